// A program of an integrator, which the test compiles and never runs. The types must accept it.
// The calls show each shape that the generator makes of the contract: bodies, members that may
// be null, lists in a query, pages and errors.
import { type AnyPayload, connect, type EventType, must, type Schemas } from "./api.js";

// The type requires every event.
export const names: Record<EventType, string> = {
  "post.created": "a post",
  "post.status_changed": "a status",
  "vote.created": "a vote",
  "comment.created": "a comment",
  "changelog.published": "an entry",
  "contact.created": "a contact",
  "contact.updated": "a change of a contact",
  "contact.deleted": "a contact that is gone",
};

// The function returns in every case only if `event` distinguishes the payloads and the list
// of cases is complete.
export function about(payload: AnyPayload): string {
  switch (payload.event) {
    case "post.created":
      return `${payload.post.title} is ${payload.post.status}`;
    case "post.status_changed":
      return `${payload.post.title}: ${payload.previousStatus} to ${payload.post.status}`;
    case "vote.created":
      return payload.vote.postId;
    case "comment.created":
      return payload.comment.bodyText;
    case "changelog.published":
      return payload.entry.title;
    case "contact.created":
      return payload.contact.email ?? "nobody";
    case "contact.updated":
      return Object.entries(payload.changes).map(([trait, change]) => `${trait} ${JSON.stringify(change)}`).join(", ");
    case "contact.deleted":
      return payload.contact.externalUserId ?? "nobody";
  }
}

export async function use(baseUrl: string, key: string): Promise<string[]> {
  const api = connect(baseUrl, key);
  const { data: me } = must(200, await api.GET("/v1/me"));
  const seen: string[] = [me.apiKey.scope, me.apiKey.prefix, me.organization.name];

  const events = Object.keys(names) as EventType[];
  const { data: webhook } = must(201, await api.POST("/v1/webhooks", { body: { url: "https://example.com", events } }));
  const { data: board } = must(200, await api.POST("/v1/boards", { body: { name: "Feature requests" } }));
  const inBoard = { path: { boardId: board.id } };
  // A member with a default may be left out of the body, and is always there in the answer.
  const { data: tag } = must(201, await api.POST("/v1/boards/{boardId}/tags", { params: inBoard, body: { name: "Export" } }));
  const identify = (body: Schemas["IdentifyContactRequest"]) => api.POST("/v1/contacts/identify", { body });
  const { data: contact } = must(200, await identify({ externalUserId: "user-1", name: "Ada", plan: "pro", metadata: { seats: 12 } }));

  const json = { type: "doc", content: [{ type: "paragraph" }] };
  const { data: post } = must(201, await api.POST("/v1/boards/{boardId}/posts", {
    params: inBoard,
    body: { title: "Export dashboards as PDF", body: { json, text: "For my report." }, contactId: contact.id, tagIds: [tag.id] },
  }));
  const onPost = { path: { postId: post.id } };
  const { data: comment } = must(201, await api.POST("/v1/posts/{postId}/comments", { params: onPost, body: { body: { text: "Which size?" } } }));
  const { data: vote } = must(201, await api.POST("/v1/posts/{postId}/votes", { params: onPost }));
  const { data: planned } = must(200, await api.PATCH("/v1/posts/{postId}", { params: onPost, body: { status: "planned" } }));
  const { data: merged } = must(200, await api.POST("/v1/posts/{postId}/merge", { params: onPost, body: { sourceIds: [post.id] } }));
  const { data: entry } = must(201, await api.POST("/v1/boards/{boardId}/changelog", {
    params: inBoard,
    body: { title: "PDF export", version: null, publishedAt: new Date().toISOString() },
  }));
  seen.push(tag.color, comment.body?.text ?? "", comment.parentId ?? "", vote.id, planned.voteCount.toFixed(), merged.id, entry.state);

  let cursor: string | null = null;
  do {
    const page: Schemas["PostList"] = must(200, await api.GET("/v1/boards/{boardId}/posts", {
      params: { ...inBoard, query: { limit: 1, sort: "newest", status: ["open", "planned"], ...(cursor !== null && { cursor }) } },
    }));
    seen.push(...page.data.map(({ id }) => id));
    cursor = page.nextCursor;
  } while (cursor !== null);
  const contacts = must(200, await api.GET("/v1/contacts", { params: { query: { plan: ["team", "pro"], q: contact.email ?? "" } } }));
  seen.push(...contacts.data.map(({ name }) => name ?? ""));

  const inWebhook = { path: { webhookId: webhook.id } };
  const { data: log } = must(200, await api.GET("/v1/webhooks/{webhookId}/deliveries", { params: { ...inWebhook, query: { status: "pending" } } }));
  for (const { id } of log) {
    const { data: delivery } = must(200, await api.GET("/v1/webhooks/{webhookId}/deliveries/{deliveryId}", {
      params: { path: { webhookId: webhook.id, deliveryId: id } },
    }));
    seen.push(...delivery.attempts.map(({ number, responseStatus, error }) => `${number} ${responseStatus} ${error}`));
  }

  const { error } = await api.POST("/v1/boards/{boardId}/posts", { params: inBoard, body: { title: "" } });
  seen.push(error?.error.code ?? "", error?.error.details?.fields?.[0]?.field ?? "");
  must(200, await api.DELETE("/v1/boards/{boardId}", { params: inBoard, body: { confirmName: board.name } }));
  await api.DELETE("/v1/webhooks/{webhookId}", { params: inWebhook });
  return seen;
}
