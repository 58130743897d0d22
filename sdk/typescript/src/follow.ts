import type { Call } from "./call.js";
import type { Clock } from "./clock.js";
import { APIError } from "./errors.js";
import type { Event, EventFeed, ListEventsQuery } from "./generated/types.js";
import type { CallOptions } from "./request.js";
import { afterRetryAfter, backoff, isTransient } from "./retry.js";

/** Options for following the feed. */
export interface FollowOptions {
  /** The saved `sequence` after which to begin. The default is to begin with the oldest event that is stored. */
  after?: number | null | undefined;
  /** Stores the position in the feed. */
  save?: ((sequence: number) => void | Promise<void>) | undefined;
  /** The types of events to read. The default is all. */
  types?: ListEventsQuery["types"];
  /** How many seconds a request waits for an event. The default is 30, which is the maximum. */
  wait?: number | undefined;
  /** Ends the iteration. */
  signal?: AbortSignal | undefined;
}

type Read = (query: ListEventsQuery, options: CallOptions) => Call<EventFeed>;

/** The feed without an end. */
export async function* follow(read: Read, clock: Clock, options: FollowOptions = {}): AsyncGenerator<Event, never, undefined> {
  const { save, signal, types, wait = 30 } = options;
  let after = options.after ?? undefined;
  for (;;) {
    const began = clock.now();
    const page = await outlasting(() => read({ after, types, wait }, { signal, maxRetries: 0 }), clock, signal);
    for (const event of page.data) {
      yield event;
      await save?.(event.sequence);
      signal?.throwIfAborted();
    }
    const moved = page.nextAfter !== after;
    after = page.nextAfter;
    if (page.data.length > 0) continue;
    if (moved) await save?.(after);
    // The service answers immediately if too many requests wait already. Then wait before the next request.
    else await clock.sleep(Math.max(0, began + 1000 - clock.now()), signal);
  }
}

/** Reads until it succeeds, or fails with an error that a retry can't fix. */
async function outlasting<T>(attempt: () => PromiseLike<T>, clock: Clock, signal: AbortSignal | undefined): Promise<T> {
  for (let n = 1; ; n++) {
    try {
      return await attempt();
    } catch (error) {
      if (!isTransient(error)) throw error;
      const seconds = error instanceof APIError ? error.retryAfter : null;
      await clock.sleep(Math.max(backoff(n, clock.random), afterRetryAfter(seconds ?? 0, clock.random)), signal);
    }
  }
}
