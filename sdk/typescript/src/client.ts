import { type Clock, systemClock } from "./clock.js";
import { EarshotError } from "./errors.js";
import { Resources } from "./generated/resources.js";
import { Transport } from "./transport.js";

/** How a client reaches the service. */
export interface EarshotOptions {
  /** The API key, `esk_…`. The default is the environment variable EARSHOT_API_KEY. */
  apiKey?: string | undefined;
  /** The address of your deployment. The default is the environment variable EARSHOT_BASE_URL, or http://127.0.0.1:4280. */
  baseUrl?: string | undefined;
  /** The milliseconds that an attempt may take. The default is 30,000. */
  timeout?: number | undefined;
  /** The maximum number of retries. The default is 4. */
  maxRetries?: number | undefined;
  /** A function that sends the requests. The default is the platform's fetch. */
  fetch?: typeof fetch | undefined;
  /** A clock for waits. The default is the platform's clock. */
  clock?: Clock | undefined;
}

/** A client of the service. It can be shared and needs no closing. */
export class Earshot extends Resources {
  /** Throws an `EarshotError` if the API key is missing, or if the key or the address is invalid. */
  constructor(options: EarshotOptions = {}) {
    super(
      new Transport({
        apiKey: usableKey(options.apiKey ?? environment("EARSHOT_API_KEY")),
        baseUrl: usableAddress(options.baseUrl ?? environment("EARSHOT_BASE_URL") ?? "http://127.0.0.1:4280"),
        timeout: options.timeout ?? 30_000,
        maxRetries: options.maxRetries ?? 4,
        fetch: options.fetch ?? fetch,
        clock: options.clock ?? systemClock,
      }),
    );
  }
}

// Platforms without a process have no environment. An empty variable counts as missing.
function environment(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name] || undefined;
}

// Refuses a key that no header can hold. The platform's own error would quote the key.
function usableKey(key: string | undefined): string {
  if (!key) throw new EarshotError("there is no API key: pass apiKey, or set EARSHOT_API_KEY");
  if (!/^[!-~]+$/.test(key)) throw new EarshotError("the API key has a character that no key has, such as a line break");
  return key;
}

// The error doesn't quote the address, which may contain a password. No platform's fetch accepts one.
function usableAddress(url: string): string {
  try {
    new URL(url); // which ignores white space
    if (/^https?:\/\/[^/?#@\s]+(\/[^?#\s]*)?$/.test(url)) return url.replace(/\/+$/, "");
  } catch {
    // falls through to the error below
  }
  throw new EarshotError("baseUrl is no address such as https://feedback.example.com, without a user, a query and a fragment");
}
