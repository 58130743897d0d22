import type { Call } from "./call.js";
import type { CallOptions, Request } from "./request.js";
import type { Transport } from "./transport.js";

/** A page of a list. */
export interface Page<T> {
  data: T[];
  /** Where the next page begins; null at the end. */
  nextCursor: string | null;
}

/** From where a list is read. */
export interface From {
  /** The `nextCursor` of a page, to go on behind it, or a `syncCursor` that was kept. Left out, it is the query's. */
  cursor?: string | null | undefined;
}

/**
 * A list, which is read when somebody asks for it:
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

  /** The pages up to the end. */
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
