import {randomUUID} from 'node:crypto'; // Node 18 has no global crypto
import {errorOf, PosthornBatchError, PosthornConnectionError, PosthornError} from './errors.js';
import {rows} from './operations.gen.js';
import type {components, operations} from './schema.gen.js';

type Schemas = components['schemas'];

/** The objects of the API, by name: `Schema<'Endpoint'>`. */
export type Schema<Name extends keyof Schemas> = Schemas[Name];

type Content<T> = T extends {content: {'application/json': infer Body}} ? Body : never;
// A place without parameters is `never` or `undefined`, by the compiler's settings; a conditional type of a bare `never` is `never`.
type Parameters<Op, Place extends string> =
  Op extends {parameters: infer P} ? (P extends {[K in Place]?: infer V} ? ([V] extends [never] ? {} : V extends object ? V : {}) : {}) : {};
type Body<Op> =
  Op extends {requestBody: infer B} ? {body: Content<B>} :
  Op extends {requestBody?: infer B} ? (Exclude<B, undefined> extends never ? {} : {body?: Content<Exclude<B, undefined>>}) : {};
type Success<Responses> = {[Status in keyof Responses]: Status extends 200 | 201 | 202 | 207 ? Content<Responses[Status]> : never}[keyof Responses];
type RequiredKeys<T> = {[K in keyof T]-?: {} extends Pick<T, K> ? never : K}[keyof T];
type Flatten<T> = {[K in keyof T]: T[K]};

/** What one operation takes: its path parameters, its query parameters, its headers, and its `body`, in one object. */
export type Input<Name extends keyof operations> =
  Flatten<Parameters<operations[Name], 'path'> & Parameters<operations[Name], 'query'> & Parameters<operations[Name], 'header'> & Body<operations[Name]>>;

/** What one operation returns. `Response` where it streams, `void` where it returns nothing. */
export type Output<Name extends keyof operations> =
  (typeof rows)[Name & keyof typeof rows]['answer'] extends 'stream' ? Response :
  (typeof rows)[Name & keyof typeof rows]['answer'] extends 'none' ? void :
  operations[Name] extends {responses: infer R} ? Success<R> : never;

/** Settings of one call. */
export interface CallOptions {
  signal?: AbortSignal | undefined;
}

/** Every operation of the API, by its operationId. */
export type Operations = {
  [Name in keyof operations]: RequiredKeys<Input<Name>> extends never
    ? (input?: Input<Name>, options?: CallOptions) => Promise<Output<Name>>
    : (input: Input<Name>, options?: CallOptions) => Promise<Output<Name>>;
};

export interface Options {
  /** Address of the server, such as `https://posthorn.example.com`. */
  url: string;
  /** API key: a tenant's key (`phk_...`) or a platform key (`php_...`). */
  key: string;
  /** The tenant to act within, for a platform key. */
  tenant?: string | undefined;
  /** How often a request is repeated at most. Default 5; 0 for never. */
  retries?: number | undefined;
  /** The longest pause between two tries, in milliseconds. Default 30,000. */
  maxPause?: number | undefined;
  /** The time limit of one try, in milliseconds. Default 30,000. Streams have no limit. */
  timeout?: number | undefined;
  /** Your program's name and version, sent before the SDK's own. */
  userAgent?: string | undefined;
  /** Replaces the global `fetch`. */
  fetch?: typeof fetch | undefined;
}

/** The options with those that have a default filled in. */
type Settings = Options & {[Name in Exclude<keyof Options, 'tenant' | 'userAgent'>]-?: NonNullable<Options[Name]>};

interface Row {
  readonly method: string;
  readonly path: string;
  readonly query: readonly string[];
  readonly header: readonly string[];
  readonly answer: 'json' | 'stream' | 'none';
}

/** The lists that have iterators: all operations that return `data` and `next_cursor`. */
type ListName = {
  [Name in keyof operations]: Output<Name> extends {data: unknown[]; next_cursor?: string | null} ? Name : never;
}[keyof operations];
type Item<Name extends ListName> = Output<Name> extends {data: (infer T)[]} ? T : never;

const firstPause = 200;
const largestBatch = 1000;
const largestBatchBytes = 9 << 20;

class Base {
  readonly #options: Settings;
  readonly #base: string;

  constructor(options: Options) {
    let url: URL;
    try {
      url = new URL(options.url.trim());
    } catch {
      throw new TypeError(`posthorn: ${JSON.stringify(options.url)} is not an address such as https://posthorn.example.com`);
    }
    if (!/^https?:$/.test(url.protocol) || url.username || url.search || url.hash) {
      throw new TypeError(`posthorn: ${JSON.stringify(options.url)} is not an address such as https://posthorn.example.com`);
    }
    if (!options.key?.trim()) throw new TypeError('posthorn: no API key given');
    let base = url.href.replace(/\/+$/, '');
    if (!base.endsWith('/api/v1')) base += '/api/v1';
    if (options.tenant) base += `/tenants/${segment(options.tenant)}`;
    this.#base = base;
    this.#options = {
      retries: 5, maxPause: 30_000, timeout: 30_000, fetch: globalThis.fetch,
      ...Object.fromEntries(Object.entries(options).filter(([, v]) => v !== undefined)) as unknown as Options,
      key: options.key.trim(),
    } as Settings;
    for (const [name, row] of Object.entries(rows)) {
      Object.defineProperty(this, name, {
        value: (input?: Record<string, unknown>, call?: CallOptions) => this.#call(row as Row, input ?? {}, call ?? {}),
      });
    }
  }

  /** The same client acting within one tenant, for a platform key. */
  tenant(id: string): Posthorn {
    return new Posthorn({...this.#options, tenant: id});
  }

  /**
   * Emits an event. When it returns, the event and its deliveries are stored. An event without an `idempotency_key` gets a
   * random one, so a repeated request creates no second event. To be safe across a crash of your own program too, set a key
   * that you can create again, such as the id of the row that the event is about.
   */
  async emit(event: Schema<'Emission'>, options?: CallOptions): Promise<Schema<'Accepted'>> {
    return (this as unknown as Operations).emitEvent({body: withKey(event)} as Input<'emitEvent'>, options);
  }

  /**
   * Emits any number of events, as many per request as the API takes. Throws a {@link PosthornBatchError} with all results
   * if some were rejected; the others are stored.
   */
  async emitAll(events: Iterable<Schema<'Emission'>>, options?: CallOptions): Promise<Schema<'ItemResult'>[]> {
    const results: Schema<'ItemResult'>[] = [];
    let batch: Schema<'Emission'>[] = [];
    let size = 0;
    const flush = async () => {
      if (batch.length === 0) return;
      const sent = batch.length;
      const {results: got} = await (this as unknown as Operations).emitEvents({body: {events: batch}} as Input<'emitEvents'>, options);
      if (got.length !== sent) throw new PosthornConnectionError('posthorn: the response to a batch has another number of results than it has events');
      results.push(...got);
      [batch, size] = [[], 0];
    };
    for (const each of events) {
      const event = withKey(each);
      const bytes = new TextEncoder().encode(JSON.stringify(event)).length;
      if (batch.length === largestBatch || batch.length > 0 && size + bytes > largestBatchBytes) await flush();
      batch.push(event);
      size += bytes;
    }
    await flush();
    const rejected = results.flatMap((r, i) => (r.id ? [] : [i]));
    if (rejected.length > 0) {
      const first = results[rejected[0]!]!;
      throw new PosthornBatchError(results, rejected, `${first.code}: ${first.detail}`);
    }
    return results;
  }

  /**
   * Iterates over a list, page after page:
   * `for await (const delivery of posthorn.iterate('listDeliveries', {status: 'failed'}))`.
   */
  async *iterate<Name extends ListName>(list: Name, input?: Omit<Input<Name>, 'cursor'>, options?: CallOptions): AsyncGenerator<Item<Name>> {
    const call = (this as unknown as Record<string, (input: object, options?: CallOptions) => Promise<{data: Item<Name>[]; next_cursor?: string | null}>>)[list]!;
    for (let cursor: string | null | undefined; cursor !== null;) {
      const page = await call({...input, ...(cursor ? {cursor} : {})}, options);
      yield* page.data;
      cursor = page.next_cursor ?? null;
    }
  }

  async #call(row: Row, input: Record<string, unknown>, options: CallOptions): Promise<unknown> {
    const path = row.path.replace(/\{(\w+)\}/g, (_, name: string) => segment(input[name]));
    const query = new URLSearchParams();
    for (const name of row.query) {
      for (const value of [input[name]].flat()) if (value !== undefined && value !== null) query.append(name, textOf(value));
    }
    const headers = new Headers({
      Authorization: `Bearer ${this.#options.key}`,
      Accept: row.answer === 'stream' ? '*/*' : 'application/json',
      'User-Agent': `${this.#options.userAgent ? this.#options.userAgent + ' ' : ''}posthorn-typescript/1`,
    });
    for (const name of row.header) if (input[name] !== undefined) headers.set(name, String(input[name]));
    const init: RequestInit = {method: row.method, headers, redirect: 'manual'};
    const body = input['body'];
    if (body !== undefined) {
      init.body = JSON.stringify(body);
      headers.set('Content-Type', 'application/json');
    }
    const keyed = (b: unknown) => typeof (b as {idempotency_key?: unknown})?.idempotency_key === 'string';
    const safe = row.method === 'GET' || headers.has('Idempotency-Key') || keyed(body) ||
      row.path === '/events/batch' && ((body as {events?: unknown[]})?.events ?? []).every(keyed);
    const response = await this.#send(this.#base + path + (query.size ? `?${query}` : ''), init, safe, row.answer === 'stream', options.signal);
    if (row.answer === 'stream') return response;
    if (row.answer === 'none' || response.status === 204) return undefined;
    return response.json();
  }

  async #send(url: string, init: RequestInit, safe: boolean, stream: boolean, signal?: AbortSignal): Promise<Response> {
    const {retries, maxPause, timeout} = this.#options;
    for (let attempt = 0; ; attempt++) {
      let failure: Error;
      let again: boolean;
      let pause = Math.min(firstPause * 2 ** Math.min(attempt, 20), maxPause);
      pause = pause / 2 + Math.random() * pause / 2; // so that many clients do not come back at the same time
      const limits = [signal, stream || timeout <= 0 ? undefined : AbortSignal.timeout(timeout)].filter((s): s is AbortSignal => s !== undefined);
      try {
        const response = await this.#options.fetch(url, {...init, ...(limits.length ? {signal: anyOf(limits)} : {})});
        if (response.ok) return response;
        const error = await errorOf(response);
        failure = error;
        again = error.retryAfter * 1000 <= maxPause &&
          (response.status === 429 || safe && [500, 502, 503, 504].includes(response.status));
        pause = Math.max(pause, error.retryAfter * 1000);
      } catch (cause) {
        if (signal?.aborted) throw signal.reason;
        const code = ((cause as {cause?: {code?: string}}).cause?.code) ?? '';
        failure = new PosthornConnectionError(`posthorn: ${init.method} ${url}: ${code || (cause as Error).message}`, {cause});
        again = safe || ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'UND_ERR_CONNECT_TIMEOUT'].includes(code);
      }
      if (!again || attempt >= retries) throw failure;
      await sleep(pause, signal);
    }
  }
}

/** A client of one Posthorn server with one key. It has a method for each operation of the API. */
export type Posthorn = Base & Operations;
export const Posthorn: new (options: Options) => Posthorn = Base as unknown as new (options: Options) => Posthorn;

function withKey<T extends {idempotency_key?: string | undefined}>(event: T): T {
  return event.idempotency_key ? event : {...event, idempotency_key: `sdk_${randomUUID()}`};
}

/** One segment of a path. An empty one, or one of dots, would name another path. */
function segment(id: unknown): string {
  const text = String(id ?? '');
  if (text === '' || text === '.' || text === '..') throw new TypeError(`posthorn: ${JSON.stringify(text)} is not an id`);
  return encodeURIComponent(text);
}

function textOf(value: unknown): string {
  return value instanceof Date ? value.toISOString() : String(value);
}

function anyOf(signals: AbortSignal[]): AbortSignal {
  if (signals.length === 1) return signals[0]!;
  const both = new AbortController();
  for (const s of signals) {
    if (s.aborted) both.abort(s.reason);
    s.addEventListener('abort', () => both.abort(s.reason), {once: true, signal: both.signal});
  }
  return both.signal;
}

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => { clearTimeout(timer); reject(signal!.reason); };
    const timer = setTimeout(() => { signal?.removeEventListener('abort', stop); resolve(); }, ms);
    if (signal?.aborted) stop();
    signal?.addEventListener('abort', stop, {once: true});
  });
}

export {PosthornError};
