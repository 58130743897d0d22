import assert from "node:assert/strict";
import { test } from "node:test";
import * as sdk from "../dist/index.js";
import { cases, client, serve } from "./server.mjs";

const calls = {
  create: (earshot, options) => earshot.posts.create("brd_1", { title: "A" }, options),
  get: (earshot, options) => earshot.posts.get("pst_1", options),
  identify: (earshot, options) => earshot.contacts.identify({ externalUserId: "u" }, options),
};

// What came out of a promise: undefined, or the error's code as the tables write it.
async function outcome(promise) {
  try {
    await promise;
    return undefined;
  } catch (error) {
    assert.ok(error instanceof sdk.EarshotError, error);
    return error instanceof sdk.ConnectionError ? "CONNECTION" : error.code;
  }
}

// Whether the clock was asked to wait for as long as a table says.
function waited(waits, want) {
  assert.equal(waits.length, want.length, `${waits}`);
  want.forEach(([least, most], i) => {
    assert.ok(waits[i] >= least && waits[i] <= most, `${waits[i]} is not from ${least} to ${most}`);
  });
}

for (const { name, call, answers, maxRetries, idempotencyKey, want } of await cases("retries")) {
  test(`retries: ${name}`, async (t) => {
    const server = await serve(t, answers);
    const { earshot, waits } = client(server.url);
    assert.equal(await outcome(calls[call](earshot, { maxRetries, idempotencyKey })), want.error);
    assert.equal(server.requests.length, want.requests);
    waited(waits, want.waits);
    const keys = new Set(server.requests.map((request) => request.headers["idempotency-key"]));
    assert.equal(keys.size, 1);
    const [key] = keys;
    if ("key" in want) assert.equal(key ?? null, want.key);
    else if (call === "create") assert.match(key, /^[0-9a-f-]{36}$/);
    assert.equal(new Set(server.requests.map((request) => request.body)).size, 1);
  });
}

// ERR_NOT_FOUND is a NotFoundError, ERR_INTERNAL an InternalError.
function className(code) {
  const words = code.replace(/^ERR_/, "").toLowerCase();
  return `${words.replace(/(?:^|_)(\w)/g, (_, letter) => letter.toUpperCase())}Error`;
}

for (const { name, status, headers, body, text, want } of await cases("errors")) {
  test(`errors: ${name}`, async (t) => {
    const server = await serve(t, [{ status, headers, body, text }]);
    const { earshot } = client(server.url, { maxRetries: 0 });
    const error = await earshot.posts.create("brd_1", { title: "A" }).then(assert.fail, (reason) => reason);
    assert.ok(error instanceof sdk.APIError, error);
    const { code, details, message, requestId } = error;
    assert.deepEqual({ status: error.status, code, details, requestId, message: want.message && message }, { message: undefined, ...want });
    const known = Object.entries(sdk).find(([name]) => name === className(code))?.[1];
    assert.equal(known !== undefined, !/^HTTP_|TEAPOT/.test(code));
    assert.equal(error.constructor, known ?? sdk.APIError);
    assert.equal(error.name, error.constructor.name);
  });
}

for (const { name, answers, cursor, take, want } of await cases("pages")) {
  test(`pages: ${name}`, async (t) => {
    const server = await serve(t, answers);
    const { earshot } = client(server.url);
    const ids = [];
    const read = async () => {
      for await (const item of earshot.posts.list("brd_1", { status: ["open"], tagIds: ["tag_1", "tag_2"], cursor })) {
        ids.push(item.id);
        if (ids.length === take) break;
      }
    };
    assert.equal(await outcome(read()), want.error);
    assert.deepEqual(ids, want.ids);
    assert.deepEqual(
      server.requests.map(({ url }) => url.searchParams.get("cursor")),
      want.cursors,
    );
    for (const { url } of server.requests) {
      assert.equal(url.pathname, "/v1/boards/brd_1/posts");
      assert.equal(url.searchParams.get("status"), "open");
      assert.equal(url.searchParams.get("tagIds"), "tag_1,tag_2");
    }
  });
}

for (const { name, answers, after, take, want } of await cases("feed")) {
  test(`feed: ${name}`, async (t) => {
    const server = await serve(t, answers);
    const { earshot, waits } = client(server.url);
    const log = [];
    const read = async () => {
      let taken = 0;
      for await (const { sequence } of earshot.events.follow({ after, save: (n) => void log.push(`saved ${n}`) })) {
        log.push(`event ${sequence}`);
        if (++taken === take) break;
      }
    };
    assert.equal(await outcome(read()), want.error);
    assert.deepEqual(log, want.log);
    assert.deepEqual(
      server.requests.map(({ url }) => url.searchParams.get("after")),
      want.afters.map((n) => (n === null ? null : String(n))),
    );
    for (const { url } of server.requests) assert.equal(url.searchParams.get("wait"), "30");
    waited(waits, want.waits);
  });
}

for (const { name, secret, now, signature, body, want } of await cases("signatures")) {
  test(`signatures: ${name}`, async () => {
    const headers = signature === "" ? {} : { "x-service-signature": signature };
    const unwrapped = sdk.webhooks.unwrap(body, headers, secret, { now: () => 1000 * now });
    if (want.error === undefined) {
      assert.deepEqual(await unwrapped, JSON.parse(body));
      assert.equal((await unwrapped).event, want.event);
    } else {
      const error = await unwrapped.then(assert.fail, (reason) => reason);
      assert.ok(error instanceof sdk.WebhookVerificationError, error);
      assert.equal(error.check, want.error);
    }
  });
}
