import { APIError, ConnectionError } from "./errors.js";

const statuses = [429, 500, 502, 503, 504];

/** Reports whether the same request may succeed later. */
export function isTransient(error: unknown): boolean {
  if (!(error instanceof APIError)) return error instanceof ConnectionError;
  // A success is an error only if it isn't readable.
  const unreadable = error.status >= 200 && error.status < 300;
  return unreadable || statuses.includes(error.status) || error.code === "ERR_IDEMPOTENCY_IN_PROGRESS";
}

/** The milliseconds to wait before retry n, counted from 1, if the service gives no time. */
export function backoff(n: number, random: () => number): number {
  const most = Math.min(500 * 2 ** (n - 1), 8000);
  return (most / 2) * (1 + random());
}

/** The milliseconds to wait if the service gives the seconds. A random part is added, so that clients don't retry together. */
export function afterRetryAfter(seconds: number, random: () => number): number {
  return 1000 * (seconds + Math.min(seconds / 10, 1) * random());
}

/** The milliseconds to wait before retry n after an error, or undefined if a retry makes no sense. */
export function retryDelay(error: unknown, n: number, random: () => number): number | undefined {
  if (!isTransient(error)) return undefined;
  const seconds = error instanceof APIError ? error.retryAfter : null;
  if (seconds === null) return backoff(n, random);
  return seconds > 60 ? undefined : afterRetryAfter(seconds, random);
}
