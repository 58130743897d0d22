import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { EarshotError, webhooks, widgetToken } from "../dist/index.js";

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const body = '{"event":"webhook.test","note":"Zoë"}';
const now = () => 1_614_265_330_000;
const signed = (t, text = body) => `t=${t},v1=${createHmac("sha256", secret).update(`${t}.${text}`).digest("hex")}`;
const signature = signed(1_614_265_330);

test("unwrap takes headers and bodies as servers have them", async () => {
  const bytes = Buffer.from(body);
  for (const headers of [
    new Headers({ "X-Service-Signature": signature }),
    { "X-Service-Signature": signature },
    { "x-service-signature": [signature] },
    new Map([["x-service-signature", signature]]),
  ]) {
    for (const raw of [body, bytes, new Uint8Array(bytes), bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length)]) {
      assert.equal((await webhooks.unwrap(raw, headers, secret, { now })).event, "webhook.test");
    }
  }
});

test("unwrap ignores parts of a signature that nobody knows", async () => {
  await webhooks.unwrap(body, { "x-service-signature": `v2=1=2, ${signature},nonsense` }, secret, { now });
});

test("unwrap believes one moment alone", async () => {
  for (const header of [`${signature},t=1614265331`, `t=1614265330,${signature}`, signature.toUpperCase()]) {
    await assert.rejects(webhooks.unwrap(body, { "x-service-signature": header }, secret, { now }), { check: "signature" }, header);
  }
});

test("unwrap judges by the platform's clock and a tolerance of 300 seconds unless told otherwise", async () => {
  const unwrap = (seconds, options) =>
    webhooks.unwrap(body, { "x-service-signature": signed(Math.floor(Date.now() / 1000) - seconds) }, secret, options);
  await unwrap(290);
  await assert.rejects(unwrap(310), { check: "timestamp" });
  await unwrap(310, { tolerance: 600 });
});

test("a token of the widget has the claims, and the signature that anybody can check", async () => {
  const user = { externalUserId: "acct-7", name: "Ada 🚀", mrrCents: 4900, currency: "EUR", email: undefined };
  const token = await widgetToken({ organizationId: "org_1", secretId: "wgs_1", secret: "wgsec_1", user, now });
  const [header, claims, signature] = token.split(".");
  const decode = (part) => JSON.parse(Buffer.from(part, "base64url").toString());
  assert.deepEqual(decode(header), { alg: "HS256", typ: "JWT", kid: "wgs_1" });
  assert.deepEqual(decode(claims), {
    sub: "acct-7",
    iss: "org_1",
    aud: "widget",
    iat: 1_614_265_330,
    exp: 1_614_268_930,
    name: "Ada 🚀",
    mrrCents: 4900,
    currency: "EUR",
  });
  assert.equal(signature, createHmac("sha256", "wgsec_1").update(`${header}.${claims}`).digest("base64url"));
});

test("a token isn't signed with nothing, nor for nobody", async () => {
  const input = { organizationId: "org_1", secretId: "wgs_1", secret: "wgsec_1", user: { externalUserId: "acct-7" } };
  await assert.rejects(widgetToken({ ...input, secret: "" }), EarshotError);
  await assert.rejects(widgetToken({ ...input, secret: "wgsec_" }), EarshotError);
  await assert.rejects(widgetToken({ ...input, user: { externalUserId: "" } }), EarshotError);
  await assert.rejects(widgetToken({ ...input, lifetime: 3601 }), EarshotError);
});
