// Node 18 has WebCrypto only in this module. The variable keeps bundlers from resolving the module elsewhere.
const module = "node:crypto";

/** The platform's WebCrypto. */
export async function webCrypto(): Promise<Crypto> {
  return globalThis.crypto ?? (await import(/* @vite-ignore */ /* webpackIgnore: true */ module)).webcrypto;
}

/** A key for HMAC-SHA256 from the UTF-8 bytes of a secret. */
export async function hmacKey(secret: string, usage: "sign" | "verify"): Promise<CryptoKey> {
  const { subtle } = await webCrypto();
  return subtle.importKey("raw", new TextEncoder().encode(secret), { name: "HMAC", hash: "SHA-256" }, false, [usage]);
}
