import { APIError, type Problem } from "./errors.js";
import { errorClasses } from "./generated/codes.js";

/** The JSON of an answer that succeeded. */
export type Body = Record<string, unknown>;

/** The body of an answer. Throws an APIError where it isn't a success, or isn't what the service answers. */
export function readBody(response: Response, text: string): Body {
  const body = object(parse(text));
  if (response.ok && body && body["data"] != null) return body;
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
    retryAfter: /^\d+$/.test(seconds) ? Number(seconds) : null,
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
