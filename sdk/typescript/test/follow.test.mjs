import assert from "node:assert/strict";
import { test } from "node:test";
import { GoneError } from "../dist/index.js";
import { client, failure, serve } from "./server.mjs";

const event = (sequence) => ({ id: `evt_${sequence}`, sequence, type: "post.created", payload: { event: "post.created" } });
const page = (nextAfter, ...sequences) => ({ status: 200, body: { data: sequences.map(event), nextAfter } });
const gone = failure(410, "ERR_GONE", { latest: 12 });

// What a program sees and saves until the feed ends.
async function follow(server, options) {
  const { earshot, waits } = client(server.url);
  const log = [];
  const read = async () => {
    for await (const { sequence } of earshot.events.follow({ save: (n) => void log.push(`saved ${n}`), ...options })) {
      log.push(sequence);
    }
  };
  const error = await read().catch((reason) => reason);
  return { error, log, waits, asked: server.requests.map(({ url }) => url.search) };
}

test("what types leave out is saved by where an empty page leads", async (t) => {
  const { log, asked } = await follow(await serve(t, [page(40), page(40), gone]), { types: ["vote.created", "post.created"], wait: 5 });
  assert.deepEqual(log, ["saved 40"]);
  assert.deepEqual(
    asked,
    ["", "&after=40", "&after=40"].map((after) => `?${after && "after=40&"}types=vote.created%2Cpost.created&wait=5`),
  );
});

test("outages are survived for as long as they take, and slower as they last", async (t) => {
  const outage = Array.from({ length: 9 }, () => failure(503, "ERR_UNAVAILABLE"));
  const limited = { ...failure(429, "ERR_RATE_LIMITED"), headers: { "Retry-After": "120" } };
  const server = await serve(t, [page(7, 7), ...outage, { cut: "before" }, limited, page(8, 8), gone]);
  const { error, log, waits } = await follow(server, { after: 6 });
  assert.ok(error instanceof GoneError);
  assert.deepEqual(log, [7, "saved 7", 8, "saved 8"]);
  assert.equal(waits.length, 11);
  assert.ok(waits[0] <= 500 && waits[8] >= 4000 && waits[8] <= 8000, `${waits}`);
  assert.ok(waits[10] >= 120_000 && waits[10] <= 121_000, `${waits}`);
});

test("an error of save ends it", async (t) => {
  const { error } = await follow(await serve(t, [page(7, 7)]), {
    save: () => {
      throw new Error("the disk is full");
    },
  });
  assert.equal(error.message, "the disk is full");
});

test("cancelling ends it between events and while it waits", async (t) => {
  const between = new AbortController();
  const { error, log } = await follow(await serve(t, [page(8, 7, 8)]), { signal: between.signal, save: () => between.abort("enough") });
  assert.equal(error, "enough");
  assert.deepEqual(log, [7]);

  const waiting = new AbortController();
  const { error: reason } = await follow(await serve(t, [() => waiting.abort("enough")]), { signal: waiting.signal });
  assert.equal(reason, "enough");
});

test("the time that the service is asked to wait isn't part of an attempt's", async (t) => {
  const late = (_, response) => setTimeout(() => response.end(JSON.stringify(page(7, 7).body)), 300);
  const server = await serve(t, [late]);
  const { earshot } = client(server.url, { timeout: 100, maxRetries: 0 });
  assert.equal((await earshot.events.list({ wait: 1 })).nextAfter, 7);
});
