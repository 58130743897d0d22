import { EarshotError } from "./errors.js";

/** What may be said of one call. */
export interface CallOptions {
  /** Ends the call at once, also while it waits to try again. The call is then rejected with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** The milliseconds that each attempt may take, in place of the client's. */
  timeout?: number | undefined;
  /** How often to try again, in place of the client's. */
  maxRetries?: number | undefined;
}

/** What may be said of a call that changes something. */
export interface WriteOptions extends CallOptions {
  /** A key of your own, which outlives the program: calls with the same one take effect once. Left out, each call has a new one. */
  idempotencyKey?: string | undefined;
}

/** What may be said of a call that changes what you have read. */
export interface ConditionalOptions extends WriteOptions {
  /**
   * The ETag of what you have read. If it has changed since, the call is rejected with a `PreconditionFailedError`. Where
   * it is given but empty or undefined, nothing is sent.
   */
  ifMatch?: string;
}

/** A request as the generated methods describe it. */
export interface Request {
  method: string;
  /** With {places} for the ids. */
  path: string;
  ids?: Record<string, string>;
  body?: object | undefined;
  query?: object | undefined;
  /** Whether it takes an Idempotency-Key. */
  keyed?: true;
}

/** The address of a request. */
export function address(baseUrl: string, request: Request): string {
  const path = request.path.replace(/\{(\w+)\}/g, (_, name: string) => segment(name, request.ids?.[name]));
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(request.query ?? {})) {
    // A list becomes its items with commas between them.
    if (value !== undefined) query.set(name, String(value));
  }
  const asked = String(query);
  return baseUrl + path + (asked && `?${asked}`);
}

// An empty id or dots would make the address of something else.
function segment(name: string, id: unknown): string {
  if (typeof id !== "string" || /^\.{0,2}$/.test(id)) throw new EarshotError(`${name} is no id: ${JSON.stringify(id)}`);
  return encodeURIComponent(id);
}
