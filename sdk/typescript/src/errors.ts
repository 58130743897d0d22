import type { ErrorDetails } from "./generated/types.js";

/** The class of all errors that this package makes. */
export class EarshotError extends Error {
  override name = "EarshotError";
}

/** There is no answer: the connection failed or broke off. `cause` says how. The request may have taken effect. */
export class ConnectionError extends EarshotError {
  override name = "ConnectionError";
}

/** There was no answer within the time that an attempt has. The request may have taken effect. */
export class TimeoutError extends ConnectionError {
  override name = "TimeoutError";
}

/** What an answer says that isn't a success. */
export interface Problem {
  status: number;
  code: string;
  message: string;
  details: ErrorDetails & Record<string, unknown>;
  requestId: string | null;
  retryAfter: number | null;
}

/** The service, or something before it, refused the request. There is a subclass for each known code. */
export class APIError extends EarshotError implements Problem {
  override name = "APIError";
  /** The HTTP status. */
  readonly status: number;
  /** The code to program against, such as `ERR_NOT_FOUND`; `HTTP_` and the status where an answer has none. */
  readonly code: string;
  /** What a program can use, depending on the code. */
  readonly details: ErrorDetails & Record<string, unknown>;
  /** The X-Request-Id, to quote in a report. */
  readonly requestId: string | null;
  /** The seconds of Retry-After; null where it isn't there or is 0. */
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

/** A request to a webhook isn't genuine, or can't be read. */
export class WebhookVerificationError extends EarshotError {
  override name = "WebhookVerificationError";
  /**
   * Which check failed: `secret`, your own one, which is empty; `signature`, which is missing, malformed or not by this
   * secret; `timestamp`, too far from now; `payload`, genuine but not an event.
   */
  readonly check: "secret" | "signature" | "timestamp" | "payload";

  /** @internal */
  constructor(check: WebhookVerificationError["check"], message: string) {
    super(message);
    this.check = check;
  }
}
