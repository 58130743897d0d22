import type { Call } from "./call.js";
import type { CallOptions, Request } from "./request.js";
import type { Transport } from "./transport.js";

/** A page of a list. */
export interface Page<T> {
  data: T[];
  /** Where the next page begins; null on the last page. */
  nextCursor: string | null;
}

/** Where to begin in a list. */
export interface From {
  /** The `nextCursor` of a page, to continue after it, or a stored `syncCursor`. The default is the cursor of the query. */
  cursor?: string | null | undefined;
}

/**
 * A list that is read on demand:
 * `for await (const item of list)` reads all items, page by page as they are needed.
 */
export class List<T, P extends Page<T>> implements AsyncIterable<T> {
  readonly #transport: Transport;
  readonly #request: Request;
  readonly #options: CallOptions | undefined;

  /** @internal */
  constructor(transport: Transport, request: Request, options?: CallOptions) {
    this.#transport = transport;
    this.#request = request;
    this.#options = options;
  }

  /** One page. */
  page({ cursor }: From = {}): Call<P> {
    const query = cursor == null ? this.#request.query : { ...this.#request.query, cursor };
    return this.#transport.callPage({ ...this.#request, query }, this.#options);
  }

  /** All pages up to the end. */
  async *pages(from: From = {}): AsyncGenerator<P, void, undefined> {
    for (let { cursor } = from; ; ) {
      const page = await this.page({ cursor });
      yield page;
      cursor = page.nextCursor;
      if (cursor === null) return;
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const page of this.pages()) yield* page.data;
  }
}
