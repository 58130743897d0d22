import { EarshotError } from "./errors.js";

/** Options of one call. */
export interface CallOptions {
  /** Ends the call immediately, even during a wait before a retry. The call then rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** The milliseconds that each attempt may take. It overrides the option of the client. */
  timeout?: number | undefined;
  /** The maximum number of retries. It overrides the option of the client. */
  maxRetries?: number | undefined;
}

/** Options of a call that changes something. */
export interface WriteOptions extends CallOptions {
  /** Your own key, which can outlive the program. Calls with the same key take effect once. The default is a new key for each call. */
  idempotencyKey?: string | undefined;
}

/** Options of a call that changes a resource that you have read. */
export interface ConditionalOptions extends WriteOptions {
  /**
   * The ETag of the resource that you have read. If the resource has changed since, the call rejects with a
   * `PreconditionFailedError`. If `ifMatch` is given but empty or undefined, nothing is sent.
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
  /** Whether the request takes an Idempotency-Key. */
  keyed?: true;
}

/** Returns the address of a request. */
export function address(baseUrl: string, request: Request): string {
  const path = request.path.replace(/\{(\w+)\}/g, (_, name: string) => segment(name, request.ids?.[name]));
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(request.query ?? {})) {
    // A list becomes its items, separated by commas.
    if (value !== undefined) query.set(name, String(value));
  }
  const asked = String(query);
  return baseUrl + path + (asked && `?${asked}`);
}

// An empty id or dots would give the address of another resource.
function segment(name: string, id: unknown): string {
  if (typeof id !== "string" || /^\.{0,2}$/.test(id)) throw new EarshotError(`${name} is no id: ${JSON.stringify(id)}`);
  return encodeURIComponent(id);
}
