import { hmacKey, webCrypto } from "./crypto.js";
import { EarshotError } from "./errors.js";
import type { IdentifyContactRequest } from "./generated/types.js";

/** The content of a widget's token, and the secret that signs it. */
export interface WidgetTokenInput {
  /** Your organization, `org_…`. */
  organizationId: string;
  /** The id of the widget's secret. */
  secretId: string;
  /** The widget's secret, `wgsec_…`. */
  secret: string;
  /** The person who sees the page, with the details that you have. */
  user: IdentifyContactRequest;
  /** For how many seconds the token is valid. The default is 3600, which is the maximum. */
  lifetime?: number | undefined;
  /** The time in milliseconds since 1970. The default is Date.now. */
  now?: (() => number) | undefined;
}

/** Signs a token for `Earshot("identify", token)` on your page. Call it only on a server: a browser must never have the secret. */
export async function widgetToken(input: WidgetTokenInput): Promise<string> {
  const { organizationId, secretId, secret, user, lifetime = 3600, now = Date.now } = input;
  if (!secret || secret === "wgsec_") throw new EarshotError("the secret of the widget is empty");
  if (!(lifetime > 0 && lifetime <= 3600)) throw new EarshotError("a token is valid for an hour at most");
  const { externalUserId, ...traits } = user;
  if (!externalUserId) throw new EarshotError("the user has no externalUserId");
  const iat = Math.floor(now() / 1000);
  const claims = { ...traits, sub: externalUserId, iss: organizationId, aud: "widget", iat, exp: iat + lifetime };
  const signed = `${encode({ alg: "HS256", typ: "JWT", kid: secretId })}.${encode(claims)}`;
  const { subtle } = await webCrypto();
  const signature = await subtle.sign("HMAC", await hmacKey(secret, "sign"), new TextEncoder().encode(signed));
  return `${signed}.${base64url(new Uint8Array(signature))}`;
}

function encode(value: object): string {
  return base64url(new TextEncoder().encode(JSON.stringify(value)));
}

function base64url(bytes: Uint8Array): string {
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
