import type { ErrorDetails } from "./generated/types.js";

/** The class of all errors that this package makes. */
export class EarshotError extends Error {
  override name = "EarshotError";
}

/** No answer came, because the connection failed or broke off. `cause` is the reason. The request may have taken effect. */
export class ConnectionError extends EarshotError {
  override name = "ConnectionError";
}

/** No answer came within the time of an attempt. The request may have taken effect. */
export class TimeoutError extends ConnectionError {
  override name = "TimeoutError";
}

/** The content of an error answer. */
export interface Problem {
  status: number;
  code: string;
  message: string;
  details: ErrorDetails & Record<string, unknown>;
  requestId: string | null;
  retryAfter: number | null;
}

/** The service, or a proxy in front of it, refused the request. Each known code has a subclass. */
export class APIError extends EarshotError implements Problem {
  override name = "APIError";
  /** The HTTP status. */
  readonly status: number;
  /** The code for programs, such as `ERR_NOT_FOUND`. It is `HTTP_` and the status if the answer has no code. */
  readonly code: string;
  /** Details for programs, depending on the code. */
  readonly details: ErrorDetails & Record<string, unknown>;
  /** The X-Request-Id, to quote in a report. */
  readonly requestId: string | null;
  /** The seconds of Retry-After; null if the header is missing or 0. */
  readonly retryAfter: number | null;

  /** @internal */
  constructor(problem: Problem) {
    super(problem.message);
    this.status = problem.status;
    this.code = problem.code;
    this.details = problem.details;
    this.requestId = problem.requestId;
    this.retryAfter = problem.retryAfter;
  }
}

/** A request to a webhook isn't genuine or isn't readable. */
export class WebhookVerificationError extends EarshotError {
  override name = "WebhookVerificationError";
  /**
   * The check that failed:
   * - `secret`: your own secret is empty.
   * - `signature`: it is missing, malformed or made with another secret.
   * - `timestamp`: it is too far from now.
   * - `payload`: the request is genuine, but its body is not an event.
   */
  readonly check: "secret" | "signature" | "timestamp" | "payload";

  /** @internal */
  constructor(check: WebhookVerificationError["check"], message: string) {
    super(message);
    this.check = check;
  }
}
