// The quickstart's story in TypeScript, with a client that is generated from the
// contract. It prints a line a step and ends with an error at the first thing
// that isn't as the contract says. To play it against the stack of `make up`:
//
//	. ../../.earshot/dev.env && export EARSHOT_BASE_URL EARSHOT_API_KEY
//	npm ci && npm run generate -- "$EARSHOT_BASE_URL/v1/openapi.json"
//	npm run build && npm run story
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type AnyPayload, connect, type EventType, must, type Schemas } from "./api.js";
import { Receiver, verify } from "./receiver.js";

// patience covers the 30 s that a first retry takes by default.
const patience = 90_000;

// How often each event comes in this story. The type wants every event named.
const expected: Record<EventType, number> = {
  "post.created": 2,
  "post.status_changed": 2,
  "vote.created": 1,
  "comment.created": 1,
  "changelog.published": 1,
  "contact.created": 1,
  "contact.updated": 1,
  "contact.deleted": 1,
};
const events = Object.keys(expected) as EventType[];

const api = connect(setting("EARSHOT_BASE_URL"), setting("EARSHOT_API_KEY"));

function setting(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} isn't set`);
  return value;
}

let step = 0;
const say = (line: string) => console.log(`${++step}. ${line}`);

async function eventually<T>(what: string, look: () => T | undefined | Promise<T | undefined>): Promise<T> {
  for (const end = Date.now() + patience; Date.now() < end; await sleep(100)) {
    const seen = await look();
    if (seen !== undefined) return seen;
  }
  throw new Error(`${what}: not within ${patience / 1000} s`);
}

// about names what an event is about. It compiles only while `event` tells the
// payloads apart and every one has the member that is read here.
function about(payload: AnyPayload): string {
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

// The example of the contract's introduction, with its own time.
function theExampleOfTheContractVerifies(): void {
  const body =
    '{"event":"post.created","organizationId":"org_01keee2dtpecdt9gxx2fc2wdz9","boardId":"brd_01kes98wr5ese9pysevh1fbnaz","post":{"id":"pst_01kkgt5hn1fpnv5e78weftw0p1","title":"Export dashboards as PDF","slug":"export-dashboards-as-pdf","status":"open","createdAt":"2026-03-12T10:41:07.233Z"}}';
  const header = "t=1773312067,v1=b5144ade44a8de3e8b7e31365a285ad15321862d6498cbbe354303b18426c9de";
  const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  assert.ok(verify(secret, header, Buffer.from(body), 1773312067));
  assert.ok(verify(secret, `${header.replace("v1=", "v1=00,v1=")},v2=x`, Buffer.from(body), 1773312367));
  assert.ok(!verify(secret, header, Buffer.from(body), 1773312368), "older than 300 s");
  assert.ok(!verify(secret, header, Buffer.from(`${body} `), 1773312067), "another body");
  assert.ok(!verify(`${secret}x`, header, Buffer.from(body), 1773312067), "another secret");
}

interface Made {
  board: Schemas["Board"];
  tag: Schemas["Tag"];
  contact: Schemas["Contact"];
  post: Schemas["Post"];
  other: Schemas["Post"];
  entry: Schemas["ChangelogEntry"];
}

// collect makes feedback, so that all events but the last come about.
async function collect(): Promise<Made> {
  const user = `user-${randomUUID()}`;
  const { data: board } = must(200, await api.POST("/v1/boards", { body: { name: `Feature requests ${user}` } }));
  const inBoard = { path: { boardId: board.id } };
  // Without its colour, which the service has a default for.
  const { data: tag } = must(201, await api.POST("/v1/boards/{boardId}/tags", { params: inBoard, body: { name: "Export" } }));
  assert.match(tag.color, /^#[0-9a-f]{6}$/);
  const email = `${user}@example.com`;
  const identify = (body: Schemas["IdentifyContactRequest"]) => api.POST("/v1/contacts/identify", { body });
  const { data: unnamed } = must(201, await identify({ externalUserId: user, email }));
  assert.equal(unnamed.name, null);
  const { data: contact } = must(200, await identify({ externalUserId: user, name: "Ada", plan: "pro", metadata: { seats: 12 } }));
  assert.deepEqual([contact.id, contact.email, contact.name, contact.metadata], [unnamed.id, email, "Ada", { seats: 12 }]);
  say(`A board, a tag and the contact ${contact.id}, identified twice.`);

  const json = { type: "doc", content: [{ type: "paragraph" }] };
  const { data: post } = must(201, await api.POST("/v1/boards/{boardId}/posts", {
    params: inBoard,
    body: { title: "Export dashboards as PDF", body: { json, text: "For my weekly report." }, contactId: contact.id, tagIds: [tag.id] },
  }));
  assert.deepEqual([post.status, post.contactId, post.tagIds, post.body.json], ["open", contact.id, [tag.id], json]);
  const onPost = { path: { postId: post.id } };
  const text = "Which paper size do your readers need?";
  const { data: comment } = must(201, await api.POST("/v1/posts/{postId}/comments", { params: onPost, body: { body: { text } } }));
  assert.deepEqual([comment.parentId, comment.body?.text], [null, text]);
  const { data: vote } = must(201, await api.POST("/v1/posts/{postId}/votes", { params: onPost }));
  assert.equal(must(200, await api.POST("/v1/posts/{postId}/votes", { params: onPost })).data.id, vote.id, "a second vote is the first");
  const { data: planned } = must(200, await api.PATCH("/v1/posts/{postId}", { params: onPost, body: { status: "planned" } }));
  assert.deepEqual([planned.status, planned.voteCount, planned.commentCount], ["planned", 1, 1]);
  say(`The post ${post.id} with a comment and a vote, now planned.`);

  const { data: other } = must(201, await api.POST("/v1/boards/{boardId}/posts", { params: inBoard, body: { title: "PDF reports" } }));
  assert.equal(must(200, await api.POST("/v1/posts/{postId}/merge", { params: onPost, body: { sourceIds: [other.id] } })).data.id, post.id);
  const { data: merged } = must(200, await api.GET("/v1/posts/{postId}", { params: { path: { postId: other.id } } }));
  assert.deepEqual([merged.status, merged.mergedIntoId], ["duplicate", post.id]);
  const { data: entry } = must(201, await api.POST("/v1/boards/{boardId}/changelog", {
    params: inBoard,
    body: { title: "PDF export", version: null, publishedAt: new Date(Date.now() - 1000).toISOString() },
  }));
  assert.equal(entry.state, "published");
  say("A second post, merged into the first, and a changelog entry.");
  return { board, tag, contact, post, other, entry };
}

// look reads the lists: a search, a filter that is a list, pages, and refusals.
async function look({ board, contact, post, other }: Made): Promise<void> {
  const path = { boardId: board.id };
  const found = must(200, await api.GET("/v1/boards/{boardId}/posts", {
    params: { path, query: { q: "exporting dashboard", status: ["open", "planned"] } },
  }));
  assert.deepEqual(found.data.map(({ id }) => id), [post.id]);
  const walked: string[] = [];
  let cursor: string | null = null;
  do {
    const page: Schemas["PostList"] = must(200, await api.GET("/v1/boards/{boardId}/posts", {
      params: { path, query: { limit: 1, sort: "newest", ...(cursor !== null && { cursor }) } },
    }));
    walked.push(...page.data.map(({ id }) => id));
    cursor = page.nextCursor;
  } while (cursor !== null);
  assert.deepEqual(walked, [other.id, post.id]);
  const contacts = must(200, await api.GET("/v1/contacts", { params: { query: { plan: ["team", "pro"], q: contact.email ?? "" } } }));
  assert.deepEqual(contacts.data.map(({ id }) => id), [contact.id]);
  say("Search, filters and pages find what is there.");

  const { error, response } = await api.POST("/v1/boards/{boardId}/posts", { params: { path }, body: { title: "" } });
  assert.equal(response.status, 422);
  assert.deepEqual([error?.error.code, error?.error.details?.fields?.[0]?.field], ["ERR_VALIDATION", "title"]);
  say(`A post without a title is refused: ${error?.error.message}`);
}

// remove deletes everything but the webhook. The last event comes of it.
async function remove({ board, tag, contact, post, other, entry }: Made): Promise<void> {
  must(200, await api.DELETE("/v1/changelog/{entryId}", { params: { path: { entryId: entry.id } } }));
  for (const postId of [post.id, other.id]) must(200, await api.DELETE("/v1/posts/{postId}", { params: { path: { postId } } }));
  must(200, await api.DELETE("/v1/boards/{boardId}/tags/{tagId}", { params: { path: { boardId: board.id, tagId: tag.id } } }));
  must(200, await api.DELETE("/v1/contacts/{contactId}", { params: { path: { contactId: contact.id } } }));
  must(200, await api.DELETE("/v1/boards/{boardId}", { params: { path: { boardId: board.id } }, body: { confirmName: board.name } }));
  say("Everything is deleted again but the webhook.");
}

// theRetryCame looks at what arrived, and returns the delivery that failed once.
async function theRetryCame(receiver: Receiver): Promise<string> {
  const total = Object.values(expected).reduce((sum, n) => sum + n);
  const deliveries = await eventually(`${total} deliveries and a retry`, () => {
    for (const { event, valid } of receiver.attempts) assert.ok(valid, `${event}: the signature is wrong`);
    const succeeded = new Map(receiver.attempts.filter(({ answered }) => answered === 204).map((a) => [a.delivery, a]));
    return succeeded.size >= total ? succeeded : undefined;
  });
  for (const { event, payload } of receiver.attempts) assert.equal(payload.event, event, "the header names the event of the body");
  for (const event of events) {
    const arrived = [...deliveries.values()].filter((a) => a.event === event);
    assert.equal(arrived.length, expected[event], event);
    for (const { payload } of arrived) console.log(`   ${event.padEnd(20)} ${about(payload)}`);
  }
  const failed = receiver.attempts.filter(({ answered }) => answered === 500);
  assert.equal(failed.length, 1);
  const [first] = failed;
  assert.ok(first);
  const [, again, ...more] = receiver.attempts.filter(({ delivery }) => delivery === first.delivery);
  assert.ok(again && more.length === 0, "a retry, and one only");
  assert.deepEqual(again.body, first.body, "the body of a retry is byte for byte the same");
  say(`${first.delivery} (${first.event}) was answered 500 and came again.`);
  return first.delivery;
}

// theLogAgrees compares the service's log with what the receiver saw.
async function theLogAgrees(webhookId: string, failed: string, receiver: Receiver): Promise<void> {
  const path = { webhookId };
  const list = (status?: Schemas["DeliveryStatus"]) =>
    api.GET("/v1/webhooks/{webhookId}/deliveries", { params: { path, query: status ? { status } : {} } });
  await eventually("the end of the deliveries", async () => must(200, await list("pending")).data.length === 0 || undefined);
  const { data: log } = must(200, await list());
  assert.deepEqual(new Set(log.map(({ id }) => id)), new Set(receiver.attempts.map(({ delivery }) => delivery)));
  for (const delivery of log) {
    assert.equal(delivery.status, "succeeded");
    assert.equal(delivery.attemptCount, delivery.id === failed ? 2 : 1, delivery.id);
    assert.deepEqual([delivery.lastResponseStatus, delivery.lastError, delivery.failedAt], [204, null, null]);
  }
  const { data: detail } = must(200, await api.GET("/v1/webhooks/{webhookId}/deliveries/{deliveryId}", {
    params: { path: { webhookId, deliveryId: failed } },
  }));
  assert.deepEqual(
    detail.attempts.map(({ number, responseStatus, error }) => [number, responseStatus, error]),
    [[1, 500, "http_status"], [2, 204, null]],
  );
  assert.deepEqual(detail.payload, receiver.attempts.find(({ delivery }) => delivery === failed)?.payload);
  say(`The log has ${log.length} deliveries, all succeeded, and the two attempts of that one.`);
}

async function story(receiver: Receiver): Promise<void> {
  theExampleOfTheContractVerifies();
  const { data: me } = must(200, await api.GET("/v1/me"));
  assert.equal(me.apiKey.scope, "read:write");
  say(`The key ${me.apiKey.prefix}… of ${me.organization.name} may write.`);

  const { data: webhook } = must(201, await api.POST("/v1/webhooks", { body: { url: receiver.url, events } }));
  receiver.secret = webhook.secret;
  const params = { path: { webhookId: webhook.id } };
  try {
    assert.deepEqual(new Set(webhook.events), new Set(events));
    say(`The webhook ${webhook.id} for all events, to ${receiver.url}, which fails once.`);
    const made = await collect();
    await look(made);
    await remove(made);
    const failed = await theRetryCame(receiver);
    await theLogAgrees(webhook.id, failed, receiver);
  } finally {
    // Unchecked, so as not to hide what went wrong before.
    await api.DELETE("/v1/webhooks/{webhookId}", { params });
  }
  const { error } = await api.GET("/v1/webhooks/{webhookId}", { params });
  assert.equal(error?.error.code, "ERR_NOT_FOUND");
  say("The webhook is gone.");
}

const receiver = await Receiver.start(1);
try {
  await story(receiver);
} finally {
  receiver.stop();
}
