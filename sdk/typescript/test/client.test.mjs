import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { inspect } from "node:util";
import { APIError, ConnectionError, Earshot, EarshotError, TimeoutError, UnavailableError, version } from "../dist/index.js";
import { client, failure, post, serve } from "./server.mjs";

const ok = { status: 200, headers: { "X-Request-Id": "req_1", ETag: '"tag"' }, body: { data: post } };
const silence = () => {}; // an answer that never comes

test("a request says whose it is, what it wants and by whom it was written", async (t) => {
  const server = await serve(t, [ok]);
  await client(`${server.url}/behind/a/proxy/`).earshot.posts.update(
    "pst_1",
    { status: "planned", title: undefined },
    { ifMatch: '"tag"' },
  );
  const [{ method, url, headers, body }] = server.requests;
  assert.equal(`${method} ${url.pathname}`, "PATCH /behind/a/proxy/v1/posts/pst_1");
  assert.equal(headers.authorization, "Bearer esk_secret");
  assert.equal(headers["user-agent"], `earshot-typescript/${version}`);
  assert.equal(headers["content-type"], "application/json");
  assert.equal(headers["if-match"], '"tag"');
  assert.equal(body, '{"status":"planned"}');
});

test("a read has neither a body nor a key", async (t) => {
  const server = await serve(t, [ok]);
  await client(server.url).earshot.posts.get("pst_1");
  const [{ headers, body }] = server.requests;
  assert.deepEqual([headers["content-type"], headers["idempotency-key"], body], [undefined, undefined, ""]);
});

test("each call has a key of its own", async (t) => {
  const server = await serve(t, [ok, ok]);
  const { earshot } = client(server.url);
  await earshot.posts.create("brd_1", { title: "A" });
  await earshot.posts.create("brd_1", { title: "A" });
  const [first, second] = server.requests.map((request) => request.headers["idempotency-key"]);
  assert.notEqual(first, second);
});

test("a write isn't sent where the ETag that it goes by was lost", async (t) => {
  const server = await serve(t, [ok]);
  const { earshot } = client(server.url);
  for (const ifMatch of [undefined, null, ""]) {
    await assert.rejects(earshot.posts.update("pst_1", { title: "A" }, { ifMatch }), EarshotError, `${ifMatch}`);
  }
  assert.equal(server.requests.length, 0);
});

test("an answer's headers come with it, and members that nobody knows stay", async (t) => {
  const server = await serve(t, [{ ...ok, body: { data: { ...post, status: "a later one", weight: 3 } } }]);
  const { data, etag, requestId, status, headers } = await client(server.url).earshot.posts.get("pst_1").withResponse();
  assert.deepEqual(data, { ...post, status: "a later one", weight: 3 });
  assert.deepEqual([etag, requestId, status, headers.get("x-request-id")], ['"tag"', "req_1", 200, "req_1"]);
});

test("an id can't make the address of something else", async (t) => {
  const server = await serve(t, [ok]);
  const { earshot } = client(server.url);
  for (const id of ["", ".", "..", undefined]) {
    await assert.rejects(earshot.posts.get(id), EarshotError);
    await assert.rejects(earshot.deliveries.get("whk_1", id), EarshotError);
    await assert.rejects(earshot.posts.list(id).page(), EarshotError);
  }
  assert.equal(server.requests.length, 0);
  await earshot.posts.get("../boards/brd_1?q=ü#");
  assert.equal(server.requests[0].url.pathname, "/v1/posts/..%2Fboards%2Fbrd_1%3Fq%3D%C3%BC%23");
});

test("the environment says what the program doesn't", async (t) => {
  const server = await serve(t, [ok]);
  t.after(() => {
    delete process.env.EARSHOT_API_KEY;
    delete process.env.EARSHOT_BASE_URL;
  });
  process.env.EARSHOT_API_KEY = "esk_of_the_environment";
  process.env.EARSHOT_BASE_URL = server.url;
  await new Earshot().posts.get("pst_1");
  assert.equal(server.requests[0].headers.authorization, "Bearer esk_of_the_environment");
  process.env.EARSHOT_API_KEY = "";
  assert.throws(() => new Earshot(), /pass apiKey, or set EARSHOT_API_KEY/);
});

test("what can't be a key or an address is refused at once, without telling the key", () => {
  assert.throws(() => new Earshot({ apiKey: "" }), EarshotError);
  assert.throws(
    () => new Earshot({ apiKey: "esk_secret\n" }),
    (error) => error instanceof EarshotError && !inspect(error).includes("secret"),
  );
  for (const baseUrl of [
    "",
    "example.com",
    "ftp://example.com",
    "https://",
    "https://example.com?a=b",
    "http://[::1",
    "https://a:b@example.com",
    "https://:b@example.com",
    "https://example.com?",
    "https://example.com/#part",
    "http://",
    "http:///v1",
    "http://:4280",
    "http://example.com:99999",
    "https://example.com\n",
    "https://exa mple.com",
  ]) {
    assert.throws(() => new Earshot({ apiKey: "esk_secret", baseUrl }), EarshotError, baseUrl);
  }
});

test("an error's message doesn't tell what was asked for", async () => {
  const { earshot } = client("http://127.0.0.1:1", { maxRetries: 0 });
  const error = await earshot.contacts
    .list({ email: "ada@example.com" })
    .page()
    .catch((reason) => reason);
  assert.match(error.message, /^GET http:\/\/127\.0\.0\.1:1\/v1\/contacts: /);
  assert.doesNotMatch(error.message, /ada/);
});

test("no log of the client or of an error shows the key", async (t) => {
  const server = await serve(t, [failure(503, "ERR_UNAVAILABLE"), { cut: "before" }]);
  const { earshot } = client(server.url, { maxRetries: 0 });
  const errors = [await earshot.me.get().catch((error) => error), await earshot.me.get().catch((error) => error)];
  assert.ok(errors[0] instanceof UnavailableError && errors[1] instanceof ConnectionError);
  for (const shown of [earshot, earshot.posts.list("brd_1"), ...errors]) {
    assert.doesNotMatch(inspect(shown, { depth: 20, showHidden: true }), /esk_secret/);
    assert.doesNotMatch(JSON.stringify(shown), /esk_secret/);
  }
});

test("an attempt that takes too long is tried again, and told from a cancelled one", async (t) => {
  const server = await serve(t, [silence, ok, silence]);
  const { earshot, waits } = client(server.url);
  assert.deepEqual(await earshot.posts.get("pst_1", { timeout: 100 }), post);
  assert.equal(waits.length, 1);
  await assert.rejects(earshot.posts.get("pst_1", { timeout: 100, maxRetries: 0 }), TimeoutError);
});

test("an answer whose end doesn't come takes too long, too", async (t) => {
  const server = await serve(t, [(_, response) => response.writeHead(200, { "Content-Length": 100 }).write('{"data"')]);
  await assert.rejects(client(server.url, { timeout: 100, maxRetries: 0 }).earshot.me.get(), TimeoutError);
});

test("cancelling ends a request at once, and isn't tried again", async (t) => {
  const cancelling = new AbortController();
  const reason = new Error("the user left");
  const server = await serve(t, [() => cancelling.abort(reason), ok]);
  await assert.rejects(client(server.url).earshot.me.get({ signal: cancelling.signal }), reason);
  await assert.rejects(client(server.url).earshot.me.get({ signal: cancelling.signal }), reason);
  assert.equal(server.requests.length, 1);
});

test("cancelling ends a wait at once, by the platform's clock", async (t) => {
  const cancelling = new AbortController();
  const answer = { ...failure(503, "ERR_UNAVAILABLE"), headers: { "Retry-After": "60" } };
  const server = await serve(t, [answer]);
  const earshot = new Earshot({ apiKey: "esk_secret", baseUrl: server.url });
  const began = Date.now();
  setTimeout(() => cancelling.abort(), 200);
  await assert.rejects(earshot.me.get({ signal: cancelling.signal }), { name: "AbortError" });
  assert.ok(Date.now() - began < 30_000);
  assert.equal(server.requests.length, 1);
});

test("a success that can't be read is an error in the end", async (t) => {
  const server = await serve(t, [
    { status: 200, text: "<html>" },
    { status: 200, text: "[1]" },
  ]);
  const error = await client(server.url, { maxRetries: 1 })
    .earshot.me.get()
    .catch((reason) => reason);
  assert.ok(error instanceof APIError, error);
  assert.deepEqual([error.status, error.code, server.requests.length], [200, "HTTP_200", 2]);
});

test("a body that isn't JSON is the caller's mistake and not tried again", async () => {
  const { earshot, waits } = client("http://127.0.0.1:1");
  await assert.rejects(earshot.posts.create("brd_1", { title: 1n }), TypeError);
  await assert.rejects(earshot.posts.create("brd_1", { title: "A" }, { idempotencyKey: "a\nb" }), TypeError);
  assert.equal(waits.length, 0);
});

test("a call that nobody awaits twice is sent once", async (t) => {
  const server = await serve(t, [ok]);
  const call = client(server.url).earshot.posts.get("pst_1");
  let settled = 0;
  assert.deepEqual(await Promise.all([call, call.finally(() => settled++), call.catch(assert.fail)]), [post, post, post]);
  assert.deepEqual([settled, server.requests.length], [1, 1]);
});

test("pages are walked from a cursor, and tell where a copy goes on", async (t) => {
  const page = (id, nextCursor) => ({
    status: 200,
    body: { data: [{ ...post, id }], nextCursor, deleted: [{ id: "pst_0" }], syncCursor: `s-${id}` },
  });
  const server = await serve(t, [page("pst_1", "c1"), page("pst_2", null)]);
  const pages = [];
  for await (const { syncCursor, deleted } of client(server.url).earshot.posts.listAll({ includeDeleted: true }).pages({ cursor: "s-0" })) {
    pages.push([syncCursor, deleted.length]);
  }
  assert.deepEqual(pages, [
    ["s-pst_1", 1],
    ["s-pst_2", 1],
  ]);
  assert.deepEqual(
    server.requests.map(({ url }) => url.search),
    ["?includeDeleted=true&cursor=s-0", "?includeDeleted=true&cursor=c1"],
  );
});

test("the package has the contract's version, and names no other package", () => {
  const packaged = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  assert.equal(packaged.version, version);
  assert.equal(packaged.dependencies, undefined);
});
