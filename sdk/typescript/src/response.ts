import { APIError, type Problem } from "./errors.js";
import { errorClasses } from "./generated/codes.js";

/** The JSON of a successful answer. */
export type Body = Record<string, unknown>;

/** Reads the result from an answer. It returns undefined if the answer doesn't come from the service. */
export type Reader<T> = (body: Body) => T | undefined;

/** Reads the `data` of an answer. */
export function data<T>({ data }: Body): T | undefined {
  return (data ?? undefined) as T | undefined;
}

/** Reads a page of a list. A page needs a cursor, which is null at the end of the list. */
export function page<P>(body: Body): P | undefined {
  const { data, nextCursor } = body;
  const leads = nextCursor === null || (typeof nextCursor === "string" && nextCursor !== "");
  return Array.isArray(data) && leads ? (body as P) : undefined;
}

/** Reads a page of the feed. It always has the position at which to continue. */
export function feed<P>(body: Body): P | undefined {
  return Array.isArray(body.data) && Number.isInteger(body.nextAfter) ? (body as P) : undefined;
}

/** Reads the result of an answer. Throws an APIError if the answer isn't a success, or doesn't come from the service. */
export function readAnswer<T>(response: Response, text: string, read: Reader<T>): T {
  const body = object(parse(text));
  const found = response.ok && body ? read(body) : undefined;
  if (found !== undefined) return found;
  const error = object(body?.error);
  const problem = problemOf(response, response.ok ? undefined : error);
  throw new (errorClasses.get(problem.code) ?? APIError)(problem);
}

function problemOf(response: Response, error: Body | undefined): Problem {
  const { headers, status } = response;
  const known = typeof error?.code === "string" ? error : undefined;
  const seconds = headers.get("retry-after") ?? "";
  return {
    status,
    code: known ? String(known.code) : `HTTP_${status}`,
    message: known ? String(known.message ?? "") : `an answer with the status ${status} that isn't the service's`,
    details: (known && object(known.details)) ?? {},
    requestId: headers.get("x-request-id"),
    // With 0, all clients would retry without a pause.
    retryAfter: /^\d+$/.test(seconds) ? Number(seconds) || null : null,
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // a proxy's page, or nothing
  }
}

function object(value: unknown): Body | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Body) : undefined;
}
