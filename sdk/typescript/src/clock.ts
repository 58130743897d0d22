/** The clock and the random numbers of a client. */
export interface Clock {
  /** The time in milliseconds since 1970. */
  now(): number;
  /** Resolves after this many milliseconds, or rejects with the signal's reason. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
  /** A number from 0 up to 1. */
  random(): number;
}

/** The platform's clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  random: () => Math.random(),
  sleep: (milliseconds, signal) =>
    new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const cancel = () => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener("abort", cancel);
        resolve();
      }, Math.min(milliseconds, 2 ** 31 - 1)); // the longest time that timers support
      signal?.addEventListener("abort", cancel, { once: true });
    }),
};
