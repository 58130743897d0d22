// What the types must refuse. tsc fails at a line below that it would accept, so
// a contract whose types have come loose doesn't pass. Beside @ts-expect-error
// stands the code of the error, which the test compares: a line that is refused
// for another reason proves nothing.
import type { connect, EventType, Payload, Schemas } from "./api.js";

type Api = ReturnType<typeof connect>;

export const bodies = [
  { title: "Dark mode" } satisfies Schemas["CreatePostRequest"],
  // @ts-expect-error TS2353: no such member
  { title: "Dark mode", colour: "black" } satisfies Schemas["CreatePostRequest"],
  // @ts-expect-error TS1360: the title is required
  { contactId: null } satisfies Schemas["CreatePostRequest"],
  // @ts-expect-error TS2322: the title can't be null, and contactId can
  { title: null, contactId: null } satisfies Schemas["CreatePostRequest"],
  { status: "planned" } satisfies Schemas["UpdatePostRequest"],
  // @ts-expect-error TS2322: no such status
  { status: "done" } satisfies Schemas["UpdatePostRequest"],
  { externalUserId: "user-1", mrrCents: 4900, currency: "EUR" } satisfies Schemas["IdentifyContactRequest"],
  // @ts-expect-error TS1360: required by the second part of an allOf
  { mrrCents: 4900, currency: "EUR" } satisfies Schemas["IdentifyContactRequest"],
  // @ts-expect-error TS2322: a number, by the first part of an allOf
  { externalUserId: "user-1", mrrCents: "4900" } satisfies Schemas["IdentifyContactRequest"],
  { url: "https://example.com", events: ["post.created"] } satisfies Schemas["CreateWebhookRequest"],
  // @ts-expect-error TS2322: no such event
  { url: "https://example.com", events: ["post.deleted"] } satisfies Schemas["CreateWebhookRequest"],
];

export const answers = [
  (post: Schemas["Post"]) => post.contactId?.length,
  // @ts-expect-error TS18047: it may be null
  (post: Schemas["Post"]) => post.contactId.length,
  // @ts-expect-error TS2367: no such status
  (post: Schemas["Post"]) => post.status === "closed",
  (webhook: Schemas["WebhookWithSecret"]) => webhook.secret,
  // @ts-expect-error TS2339: only the answer to the registration has it
  (webhook: Schemas["Webhook"]) => webhook.secret,
  (payload: Payload<"vote.created">) => payload.vote,
  // @ts-expect-error TS2339: this event has no post
  (payload: Payload<"vote.created">) => payload.post,
  // @ts-expect-error TS2344: no such event
  (payload: Payload<"vote.deleted">) => payload,
  // @ts-expect-error TS2322: the payloads are told apart by their event
  (payload: Payload<"post.created">): "vote.created" => payload.event,
  (event: EventType) => event === "contact.deleted",
];

const path = { boardId: "" };
export const calls = [
  (api: Api) => api.GET("/v1/boards/{boardId}/posts", { params: { path, query: { status: ["open"], sort: "votes" } } }),
  // @ts-expect-error TS2345: no such path
  (api: Api) => api.GET("/v1/boards/{boardId}/post", { params: { path } }),
  // @ts-expect-error TS2345: no such method
  (api: Api) => api.PUT("/v1/boards/{boardId}/posts", { params: { path } }),
  // @ts-expect-error TS2554: the path wants its parameter
  (api: Api) => api.GET("/v1/boards/{boardId}/posts"),
  // @ts-expect-error TS2322: no such status
  (api: Api) => api.GET("/v1/boards/{boardId}/posts", { params: { path, query: { status: ["closed"] } } }),
  // @ts-expect-error TS2322: no such order
  (api: Api) => api.GET("/v1/boards/{boardId}/posts", { params: { path, query: { sort: "oldest" } } }),
  // @ts-expect-error TS2353: no such filter
  (api: Api) => api.GET("/v1/boards/{boardId}/posts", { params: { path, query: { state: "open" } } }),
];
