// Node 18 has it, but not as a global. A bundler mustn't look for the module where there is none.
const module = "node:crypto";

/** The platform's WebCrypto. */
export async function webCrypto(): Promise<Crypto> {
  return globalThis.crypto ?? (await import(/* @vite-ignore */ /* webpackIgnore: true */ module)).webcrypto;
}

/** A key for HMAC-SHA256 from the UTF-8 of a secret. */
export async function hmacKey(secret: string, usage: "sign" | "verify"): Promise<CryptoKey> {
  const { subtle } = await webCrypto();
  return subtle.importKey("raw", new TextEncoder().encode(secret), { name: "HMAC", hash: "SHA-256" }, false, [usage]);
}
