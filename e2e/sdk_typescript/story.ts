// The story of the quickstart with the SDK. It prints a line a step, and ends with an error at the first thing that isn't as
// promised. It holds on a bad connection too: each thing that it makes is there once.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import {
  Earshot,
  type Event,
  type EventType,
  NotFoundError,
  PreconditionFailedError,
  ValidationError,
  webhooks,
  widgetToken,
} from "@earshot/sdk";
import { type Receiver, startReceiver } from "./receiver.js";

/** How often each event comes in this story. */
const expected: Partial<Record<EventType, number>> = {
  "contact.created": 1,
  "contact.updated": 1,
  "post.created": 3,
  "comment.created": 1,
  "vote.created": 1,
  "post.status_changed": 1,
};
const total = Object.values(expected).reduce<number>((sum, n) => sum + (n ?? 0), 0);

const earshot = new Earshot(); // by EARSHOT_API_KEY and EARSHOT_BASE_URL
const say = (line: string) => console.log(line);

async function write(receiver: Receiver): Promise<string> {
  const webhook = await earshot.webhooks.create({ url: receiver.url, events: Object.keys(expected) });
  receiver.secret = webhook.secret;
  const board = await earshot.boards.create({ name: "Feature requests" });
  const tag = await earshot.tags.create(board.id, { name: "Export", color: "#2563eb" });
  const contact = await earshot.contacts.identify({ externalUserId: "user-1", email: "ada@example.com" });
  await earshot.contacts.identify({ externalUserId: "user-1", name: "Ada", plan: "pro" });
  const post = await earshot.posts.create(board.id, {
    title: "Export dashboards as PDF",
    body: { text: "For my weekly report. Grüße, 漢字 🚀" },
    contactId: contact.id,
    tagIds: [tag.id],
  });
  for (const title of ["Dark mode", "Keyboard shortcuts"]) await earshot.posts.create(board.id, { title });
  await earshot.comments.create(post.id, { body: { text: "Which paper size do your readers need?" } });
  await earshot.votes.cast(post.id);
  await change(post.id);
  say(`The board ${board.id} is filled.`);
  return board.id;
}

/** Changes a post by what was read, and meets a change in between. */
async function change(id: string): Promise<void> {
  const read = await earshot.posts.get(id).withResponse();
  assert.ok(read.etag && read.requestId);
  const { data, status } = await earshot.posts.update(id, { status: "planned" }, { ifMatch: read.etag }).withResponse();
  assert.deepEqual([data.status, data.voteCount, status], ["planned", 1, 200]);
  await assert.rejects(earshot.posts.update(id, { status: "shipped" }, { ifMatch: read.etag }), PreconditionFailedError);
}

async function list(board: string): Promise<void> {
  const titles: string[] = [];
  for await (const post of earshot.posts.list(board, { limit: 1 })) titles.push(post.title);
  assert.deepEqual(titles, ["Keyboard shortcuts", "Dark mode", "Export dashboards as PDF"]);

  const posts = earshot.posts.list(board, { limit: 2, status: ["open", "planned"], sort: "updated" });
  const first = await posts.page();
  assert.equal(first.data.length, 2);
  const rest: string[] = [];
  for await (const page of posts.pages({ cursor: first.nextCursor })) {
    rest.push(...page.data.map((post) => post.id));
    assert.ok(page.syncCursor, "a list in the order of changes tells from where to go on");
  }
  assert.equal(rest.length, 1);

  for (const things of [earshot.boards.list(), earshot.tags.list(board), earshot.contacts.list(), earshot.webhooks.list()]) {
    assert.equal((await things.page()).data.length, 1);
  }
  say("Everything is there once.");
}

/** Follows the feed until an event, of which it saves the ones before. */
async function follow(after: number | undefined, until: (event: Event) => boolean): Promise<Event[]> {
  const events: Event[] = [];
  const save = (sequence: number) => writeFile("checkpoint", String(sequence));
  for await (const event of earshot.events.follow({ after, save, wait: 1 })) {
    events.push(event);
    if (until(event)) return events;
  }
  assert.fail("the feed has an end");
}

async function readFeed(): Promise<void> {
  const before = await follow(undefined, (event) => event.type === "comment.created");
  const saved = Number(await readFile("checkpoint", "utf8"));
  assert.equal(saved, before.at(-2)?.sequence, "the event that the loop ended at counts as not worked on");
  const behind = await follow(saved, (event) => event.type === "post.status_changed");
  assert.deepEqual(behind[0], before.at(-1), "it comes again, and no other");
  const all = [...before, ...behind.slice(1)];
  const count = (type: string) => all.filter((event) => event.type === type && event.payload.event === type).length;
  for (const [type, times] of Object.entries(expected)) assert.equal(count(type), times, type);
  assert.equal(all.length, total);

  const reason = new Error("that's enough");
  const signal = new AbortController();
  setTimeout(() => signal.abort(reason), 500);
  const waiting = earshot.events.follow({ after: all.at(-1)?.sequence, signal: signal.signal });
  await assert.rejects(waiting.next(), reason);
  say(`The feed has ${total} events, each once.`);
}

async function awaitDeliveries(receiver: Receiver): Promise<void> {
  for (const end = Date.now() + 60_000; receiver.received.size < total; await sleep(50)) {
    assert.ok(Date.now() < end, `only ${receiver.received.size} deliveries arrived`);
  }
  assert.equal(receiver.failures, 1);
  const forged = await fetch(receiver.url, { method: "POST", body: "{}", headers: { "x-service-signature": "t=1,v1=00" } });
  assert.equal(await forged.text(), "WebhookVerificationError: no signature of the request is by this secret");
  say(`${total} deliveries arrived, one of them at its second attempt.`);
}

async function identifyByToken(): Promise<void> {
  const origin = "https://app.example.com";
  await earshot.widget.replaceOrigins({ origins: [origin] });
  const secret = await earshot.widget.createSecret();
  const { organization } = await earshot.me.get();
  const user = { externalUserId: "user-2", email: "grace@example.com", name: "Grace 🚀", mrrCents: 4900, currency: "EUR" };
  const token = await widgetToken({ organizationId: organization.id, secretId: secret.id, secret: secret.secret, user });
  const address = `${process.env.SERVICE_URL}/widget/${organization.slug ?? organization.id}/identify`;
  const headers = { origin, "content-type": "application/json" };
  const answer = await fetch(address, { method: "POST", body: JSON.stringify({ token }), headers });
  assert.equal(answer.status, 204, await answer.text());
  const [contact] = (await earshot.contacts.list({ externalUserId: "user-2" }).page()).data;
  assert.deepEqual([contact?.name, contact?.mrrCents], ["Grace 🚀", 4900]);
  say("A token of the widget is believed.");
}

async function fail(): Promise<void> {
  await assert.rejects(earshot.posts.get("pst_../.."), NotFoundError);
  const error = await earshot.boards.create({ name: "" }).catch((reason: unknown) => reason);
  assert.ok(error instanceof ValidationError);
  assert.equal(error.details.fields?.[0]?.field, "name");
  await assert.rejects(webhooks.unwrap("{}", {}, ""), { check: "secret" });
}

const receiver = await startReceiver();
try {
  const board = await write(receiver);
  await list(board);
  await readFeed();
  await awaitDeliveries(receiver);
  await identifyByToken();
  await fail();
} finally {
  receiver.stop();
}
say("The story went well.");
