import { type Answer, Call } from "./call.js";
import type { Clock } from "./clock.js";
import { webCrypto } from "./crypto.js";
import { ConnectionError, EarshotError, TimeoutError } from "./errors.js";
import { version } from "./generated/version.js";
import { address, type CallOptions, type ConditionalOptions, type Request } from "./request.js";
import { data, feed, page, type Reader, readAnswer } from "./response.js";
import { retryDelay } from "./retry.js";

/** The settings of a client. */
export interface Settings {
  apiKey: string;
  baseUrl: string;
  timeout: number;
  maxRetries: number;
  fetch: typeof fetch;
  clock: Clock;
}

/** Sends requests, and retries them if a retry may succeed. */
export class Transport {
  // Private, so that the key never appears when a client is logged.
  readonly #settings: Settings;

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  get clock(): Clock {
    return this.#settings.clock;
  }

  /** Sends a request whose answer has the result in `data`. */
  call<T>(request: Request, options?: ConditionalOptions): Call<T> {
    return new Call(this.#send<T>(request, options, data));
  }

  /** Sends a request whose answer is a page. */
  callPage<P>(request: Request, options?: CallOptions): Call<P> {
    return new Call(this.#send<P>(request, options, page));
  }

  /** Requests a page of the feed. The time that the service is asked to wait doesn't count as time of the attempt. */
  callFeed<P>(request: Request & { query: { wait?: number | undefined } | undefined }, options?: CallOptions): Call<P> {
    const timeout = (options?.timeout ?? this.#settings.timeout) + 1000 * (request.query?.wait ?? 0);
    return new Call(this.#send<P>(request, { ...options, timeout }, feed));
  }

  async #send<T>(request: Request, options: ConditionalOptions = {}, read: Reader<T>): Promise<Answer<T>> {
    const { baseUrl, clock, fetch, maxRetries, timeout } = this.#settings;
    const url = address(baseUrl, request);
    // All attempts send the same bytes and the same key.
    const init = await this.#init(request, options);
    for (let n = 1; ; n++) {
      options.signal?.throwIfAborted();
      try {
        const [response, text] = await exchange(fetch, url, init, options.timeout ?? timeout, options.signal);
        const data = readAnswer(response, text, read);
        const { headers, status } = response;
        return { data, status, headers, etag: headers.get("etag"), requestId: headers.get("x-request-id") };
      } catch (error) {
        const delay = n > (options.maxRetries ?? maxRetries) ? undefined : retryDelay(error, n, clock.random);
        if (delay === undefined) throw error;
        await clock.sleep(delay, options.signal);
      }
    }
  }

  async #init(request: Request, options: ConditionalOptions): Promise<RequestInit> {
    const headers = new Headers({
      accept: "application/json",
      authorization: `Bearer ${this.#settings.apiKey}`,
      "user-agent": `earshot-typescript/${version}`,
    });
    if (request.keyed) headers.set("idempotency-key", options.idempotencyKey ?? (await webCrypto()).randomUUID());
    // A missing ETag must not turn a conditional write into an unconditional one.
    if ("ifMatch" in options) {
      if (!options.ifMatch) throw new EarshotError("ifMatch is given, but is no ETag");
      headers.set("if-match", options.ifMatch);
    }
    const init: RequestInit = { method: request.method, headers, redirect: "manual" };
    if (request.body !== undefined) {
      headers.set("content-type", "application/json");
      init.body = JSON.stringify(request.body);
    }
    return init;
  }
}

// The longest time that timers support.
const longest = 2 ** 31 - 1;

/** Makes one attempt. It includes the text of the answer, because that may break off too. */
async function exchange(
  fetch: Settings["fetch"],
  url: string,
  init: RequestInit,
  timeout: number,
  signal: AbortSignal | undefined,
): Promise<[Response, string]> {
  // Without the query, which may contain personal data.
  const what = `${init.method} ${url.split("?")[0]}`;
  const attempt = new AbortController();
  const cancel = () => attempt.abort(signal?.reason);
  const expire = () => attempt.abort(new TimeoutError(`${what}: no answer within ${timeout} ms`));
  const timer = setTimeout(expire, Math.min(timeout, longest));
  signal?.addEventListener("abort", cancel, { once: true });
  try {
    const response = await fetch(url, { ...init, signal: attempt.signal });
    return [response, await response.text()];
  } catch (cause) {
    if (attempt.signal.aborted) throw attempt.signal.reason;
    throw new ConnectionError(`${what}: the connection failed`, { cause });
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", cancel);
  }
}
