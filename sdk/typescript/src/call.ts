/** An answer: its data, status and headers. */
export interface Answer<T> {
  data: T;
  status: number;
  headers: Headers;
  /** The ETag, for `ifMatch`. */
  etag: string | null;
  /** The X-Request-Id, to quote in a report. */
  requestId: string | null;
}

/** A request in progress. It is a promise of the data; `withResponse` also gives the status and the headers. */
export class Call<T> implements Promise<T> {
  readonly [Symbol.toStringTag] = "Call";
  readonly #answer: Promise<Answer<T>>;

  /** @internal */
  constructor(answer: Promise<Answer<T>>) {
    this.#answer = answer;
  }

  /** The data together with the status and the headers. */
  withResponse(): Promise<Answer<T>> {
    return this.#answer;
  }

  // biome-ignore lint/suspicious/noThenProperty: it is a promise.
  then<A = T, B = never>(
    fulfilled?: ((data: T) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#answer.then((answer) => answer.data).then(fulfilled, rejected);
  }

  catch<B = never>(rejected?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<T | B> {
    return this.then(null, rejected);
  }

  finally(settled?: (() => void) | null): Promise<T> {
    return this.then().finally(settled);
  }
}
