import { hmacKey, webCrypto } from "./crypto.js";
import { WebhookVerificationError } from "./errors.js";
import type { EventPayload } from "./generated/types.js";

/** The headers of a request, as a server has them. */
export type RequestHeaders = { get(name: string): string | null } | Record<string, string | string[] | undefined>;

/** Options for the check of a signature's time. */
export interface UnwrapOptions {
  /** The time in milliseconds since 1970. The default is Date.now. */
  now?: (() => number) | undefined;
  /** How many seconds a signature's time may differ from now. The default is 300. */
  tolerance?: number | undefined;
}

/**
 * Checks that a request to a webhook is genuine and recent, and returns its event. Pass the original bytes or text as `body`,
 * without parsing and encoding it again. An event that this version doesn't know is returned unchanged.
 *
 * Rejects with a `WebhookVerificationError`, whose `check` names the failed check.
 */
export async function unwrap(
  body: string | Uint8Array | ArrayBuffer,
  headers: RequestHeaders,
  secret: string,
  options: UnwrapOptions = {},
): Promise<EventPayload> {
  const { now = Date.now, tolerance = 300 } = options;
  if (!secret || secret === "whsec_") throw new WebhookVerificationError("secret", "the secret of the webhook is empty");
  const { t, signatures } = readSignature(header(headers, "x-service-signature") ?? "");
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : new Uint8Array(body);
  if (!(await matches(secret, t, bytes, signatures))) {
    throw new WebhookVerificationError("signature", "no signature of the request is by this secret");
  }
  if (Math.abs(Math.floor(now() / 1000) - Number(t)) > tolerance) {
    throw new WebhookVerificationError("timestamp", `the request was signed more than ${tolerance} s from now`);
  }
  return readPayload(bytes);
}

async function matches(secret: string, t: string, body: Uint8Array, signatures: Uint8Array<ArrayBuffer>[]): Promise<boolean> {
  const moment = new TextEncoder().encode(`${t}.`);
  const signed = new Uint8Array(moment.length + body.length);
  signed.set(moment);
  signed.set(body, moment.length);
  const key = await hmacKey(secret, "verify");
  const { subtle } = await webCrypto();
  for (const signature of signatures) {
    if (await subtle.verify("HMAC", key, signature, signed)) return true; // in constant time
  }
  return false;
}

function readSignature(text: string): { t: string; signatures: Uint8Array<ArrayBuffer>[] } {
  const parts = text.split(",").map((part) => part.trim().split(/=(.*)/s, 2));
  const values = (wanted: string) => parts.flatMap(([name, value]) => (name === wanted && value !== undefined ? [value] : []));
  const [t = "", ...further] = values("t");
  const signatures = values("v1").filter((hex) => /^[0-9a-f]{64}$/.test(hex));
  // With two times, one could be checked and the other one used.
  if (!/^\d{1,12}$/.test(t) || further.length > 0) {
    throw new WebhookVerificationError("signature", "X-Service-Signature is missing or can't be read");
  }
  return { t, signatures: signatures.map((hex) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))) };
}

function header(headers: RequestHeaders, name: string): string | null | undefined {
  if (typeof headers.get === "function") return headers.get(name);
  const found = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
  return Array.isArray(found) ? found.join(",") : found;
}

function readPayload(body: Uint8Array): EventPayload {
  let payload: unknown;
  try {
    payload = JSON.parse(new TextDecoder().decode(body));
  } catch {
    // The service never sends this. The error follows below.
  }
  if (typeof payload === "object" && payload !== null && "event" in payload && typeof payload.event === "string") {
    return payload as EventPayload;
  }
  throw new WebhookVerificationError("payload", "the request is genuine, but its body is no event");
}
