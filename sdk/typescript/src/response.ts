import { APIError, type Problem } from "./errors.js";
import { errorClasses } from "./generated/codes.js";

/** The JSON of an answer that succeeded. */
export type Body = Record<string, unknown>;

/** Takes what was asked for from an answer; undefined where it isn't there, so that the answer isn't the service's. */
export type Reader<T> = (body: Body) => T | undefined;

/** What an answer has in `data`. */
export function data<T>({ data }: Body): T | undefined {
  return (data ?? undefined) as T | undefined;
}

/** A page of a list. One without a cursor says nothing about the list's end, where the cursor is null. */
export function page<P>(body: Body): P | undefined {
  const { data, nextCursor } = body;
  const leads = nextCursor === null || (typeof nextCursor === "string" && nextCursor !== "");
  return Array.isArray(data) && leads ? (body as P) : undefined;
}

/** A page of the feed, which always says where to go on. */
export function feed<P>(body: Body): P | undefined {
  return Array.isArray(body.data) && Number.isInteger(body.nextAfter) ? (body as P) : undefined;
}

/** What an answer was asked for. Throws an APIError where it isn't a success, or isn't what the service answers. */
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
    // 0 would have everybody ask again without a pause.
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
