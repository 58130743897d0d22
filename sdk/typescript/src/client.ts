import { type Clock, systemClock } from "./clock.js";
import { EarshotError } from "./errors.js";
import { Resources } from "./generated/resources.js";
import { Transport } from "./transport.js";

/** How a client reaches the service. */
export interface EarshotOptions {
  /** The API key, `esk_…`; left out, it is the environment's EARSHOT_API_KEY. */
  apiKey?: string | undefined;
  /** The address of your deployment; left out, it is the environment's EARSHOT_BASE_URL, or else http://127.0.0.1:4280. */
  baseUrl?: string | undefined;
  /** The milliseconds that an attempt may take, 30,000 if left out. */
  timeout?: number | undefined;
  /** How often to try again, 4 times if left out. */
  maxRetries?: number | undefined;
  /** What sends requests, in place of the platform's fetch. */
  fetch?: typeof fetch | undefined;
  /** What waits, in place of the platform's clock. */
  clock?: Clock | undefined;
}

/** A client of the service. It may be shared, and has nothing to close. */
export class Earshot extends Resources {
  /** Throws an `EarshotError` where there is no API key, or where it or the address can't be one. */
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

// Platforms without a process have no environment. A variable that is empty counts as none.
function environment(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name] || undefined;
}

// A key that no header can hold is refused here: the platform's own error would tell it.
function usableKey(key: string | undefined): string {
  if (!key) throw new EarshotError("there is no API key: pass apiKey, or set EARSHOT_API_KEY");
  if (!/^[!-~]+$/.test(key)) throw new EarshotError("the API key has a character that no key has, such as a line break");
  return key;
}

// The address isn't told: it may hold a password, which no platform's fetch takes.
function usableAddress(url: string): string {
  try {
    new URL(url); // which leaves out white space
    if (/^https?:\/\/[^/?#@\s]+(\/[^?#\s]*)?$/.test(url)) return url.replace(/\/+$/, "");
  } catch {
    // as below
  }
  throw new EarshotError("baseUrl is no address such as https://feedback.example.com, without a user, a query and a fragment");
}
