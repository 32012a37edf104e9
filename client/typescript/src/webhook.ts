import {createHmac, createPublicKey, timingSafeEqual, verify as verifyEd25519} from 'node:crypto';

/** The wire formats of an endpoint: see its `format` setting. */
export type Format = 'standard' | 'x-webhook' | 't-v1' | 'body-hex' | 'raw';

/** Headers of a request: of fetch, of Node, or a plain object. Names are looked up whatever their case. */
export type HeaderSource = Headers | Record<string, string | string[] | undefined>;

export interface VerifierOptions {
  /** The endpoint's secret, or several: during a rotation, list the old and the new one. */
  secret: string | string[];
  /** Default `standard`. */
  format?: Format;
  /** The endpoint's header prefix. Default `Webhook`. */
  prefix?: string;
  /** How far the signature's time can be from this machine's clock, in seconds. Default 300; negative: any time. */
  tolerance?: number;
  /** The current time in milliseconds. Default `Date.now`. */
  now?: () => number;
}

/** A verified delivery. Fields that the endpoint's format does not carry are empty. */
export interface Webhook<Data = unknown> {
  /** The event's id: the same on every attempt and replay. Act on each id once. */
  id: string;
  /** The delivery's id, in the formats `x-webhook` and `raw`. */
  deliveryId: string;
  type: string;
  timestamp: Date | undefined;
  version: string;
  data: Data;
  /** When the endpoint is being verified: respond with status 200 and this text. Empty for every other webhook. */
  challenge: string;
}

/** A webhook that must not be trusted. Respond with 401, and log it. */
export class SignatureError extends Error {
  override readonly name = 'SignatureError';
  constructor(
    /** Stable code, such as `signature_mismatch` or `timestamp_too_old`. */
    readonly code: string,
    readonly detail: string,
    /** The header concerned. */
    readonly header = '',
  ) {
    super(`${code}: ${detail}`);
  }
}

interface Key { hmac?: Buffer; public?: Buffer }

/** Checks the webhooks of one endpoint. */
export class Verifier {
  readonly #format: Format;
  readonly #prefix: string;
  readonly #keys: Key[];
  readonly #tolerance: number;
  readonly #now: () => number;

  constructor(options: VerifierOptions) {
    this.#format = options.format ?? 'standard';
    if (!['standard', 'x-webhook', 't-v1', 'body-hex', 'raw'].includes(this.#format)) {
      throw new SignatureError('format_unknown', 'Use standard, x-webhook, t-v1, body-hex or raw.');
    }
    this.#prefix = options.prefix || 'Webhook';
    this.#tolerance = options.tolerance ?? 300;
    this.#now = options.now ?? Date.now;
    const secrets = [options.secret].flat();
    if (secrets.length === 0) throw new SignatureError('secret_refused', 'Give at least one secret to verify with.');
    this.#keys = secrets.map((s) => parseKey(this.#format, s));
  }

  /**
   * Verifies a request and returns its event. `body` is what was received, before any parsing: a Buffer, a Uint8Array, or
   * the text. Throws a {@link SignatureError}.
   */
  verify<Data = unknown>(headers: HeaderSource, body: Uint8Array | string): Webhook<Data> {
    const bytes = bytesOf(body);
    this.check(headers, bytes);
    return this.#open(headers, bytes) as Webhook<Data>;
  }

  /** Verifies the signature alone, for a body that is no event of Posthorn. Throws a {@link SignatureError}. */
  check(headers: HeaderSource, text: Uint8Array | string): void {
    const body = bytesOf(text);
    const names = namesOf(this.#format, this.#prefix);
    const need = (name: string) => {
      const value = headerOf(headers, name);
      if (!value) throw new SignatureError('header_missing', `The request has no ${name} header. Check whether a proxy removed it, and whether the format is the right one.`, name);
      return value;
    };
    const signature = need(names.signature);
    let id = '';
    let stamp = '';
    if (this.#format === 't-v1') {
      stamp = signature.split(',').map((s) => s.trim()).find((s) => s.startsWith('t='))?.slice(2) ?? '';
      if (!stamp) throw new SignatureError('timestamp_malformed', 'The signature has no t=<unix seconds>.', names.signature);
    } else if (this.#format !== 'body-hex') {
      stamp = need(names.timestamp);
    }
    if (this.#format === 'standard') {
      id = need(names.id);
      if (id.includes('.')) throw new SignatureError('id_malformed', 'The message id contains a full stop, which the specification forbids.', names.id);
    }
    if (this.#format !== 'body-hex') this.#checkAge(stamp, names.timestamp || names.signature);
    this.#match(signature, names.signature, id, stamp, body);
  }

  #checkAge(stamp: string, header: string): void {
    if (!/^\d{1,12}$/.test(stamp)) throw new SignatureError('timestamp_malformed', 'The timestamp is not a whole number of seconds since 1970.', header);
    if (this.#tolerance < 0) return;
    const age = Math.floor(this.#now() / 1000) - Number(stamp);
    if (age > this.#tolerance) throw new SignatureError('timestamp_too_old', `The request was signed ${age} seconds ago, more than the ${this.#tolerance} allowed.`, header);
    if (-age > this.#tolerance) throw new SignatureError('timestamp_too_new', `The request was signed ${-age} seconds in the future, more than the ${this.#tolerance} allowed.`, header);
  }

  #match(header: string, name: string, id: string, stamp: string, body: Buffer): void {
    const head = this.#format === 'standard' ? `${id}.${stamp}.` : this.#format === 'body-hex' ? '' : `${stamp}.`;
    const content = Buffer.concat([Buffer.from(head), body]);
    let known = false;
    for (const part of header.split(this.#format === 'standard' ? ' ' : ',')) {
      const item = this.#format === 'standard' ? part : part.trim();
      if (!this.#knows(item)) continue;
      known = true;
      if (this.#keys.some((key) => this.#matches(key, item, content))) return;
    }
    if (!known) throw new SignatureError('signature_scheme_unknown', `No signature in this header has the shape of the ${this.#format} format.`, name);
    throw new SignatureError('signature_mismatch', "No signature matches. Check that the secret is this endpoint's, and that the body is the exact bytes received.", name);
  }

  #knows(item: string): boolean {
    switch (this.#format) {
      case 'standard': return item.startsWith('v1,') || item.startsWith('v1a,');
      case 'x-webhook': case 't-v1': return item.startsWith('v1=');
      default: return item !== '' && !/[=,]/.test(item);
    }
  }

  #matches(key: Key, item: string, content: Buffer): boolean {
    if (key.public) {
      if (!item.startsWith('v1a,')) return false;
      const signature = strictBase64(item.slice(4));
      if (!signature || signature.length !== 64) return false;
      const spki = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), key.public]);
      return verifyEd25519(null, content, createPublicKey({key: spki, format: 'der', type: 'spki'}), signature);
    }
    const mac = createHmac('sha256', key.hmac!).update(content);
    const want = this.#format === 'standard' ? `v1,${mac.digest('base64')}` :
      this.#format === 'x-webhook' || this.#format === 't-v1' ? `v1=${mac.digest('hex')}` : mac.digest('hex');
    const [a, b] = [Buffer.from(want), Buffer.from(item)];
    return a.length === b.length && timingSafeEqual(a, b);
  }

  #open(headers: HeaderSource, body: Buffer): Webhook {
    const get = (name: string) => headerOf(headers, name);
    const p = this.#prefix;
    const parsed = JSON.parse(body.toString('utf8'));
    if (this.#format === 'raw') {
      const type = get(`X-${p}-Event`);
      return {id: get(`X-${p}-Event-Id`), deliveryId: get(`X-${p}-Delivery`), type, timestamp: undefined, version: '', data: parsed, challenge: challengeOf(type, parsed)};
    }
    const time = this.#format === 'x-webhook' ? parsed.created_at : parsed.timestamp;
    const type = this.#format === 'body-hex' ? parsed.event : parsed.type ?? parsed.event ?? '';
    return {
      id: this.#format === 'body-hex' ? get(`X-${p}-Event-Id`) : parsed.id,
      deliveryId: this.#format === 'x-webhook' ? get('X-Delivery-Id') : '',
      type, timestamp: time ? new Date(time) : undefined, version: parsed.version ?? '', data: parsed.data,
      challenge: challengeOf(type, parsed.data),
    };
  }
}

function bytesOf(body: Uint8Array | string): Buffer {
  return typeof body === 'string' ? Buffer.from(body) : Buffer.from(body.buffer, body.byteOffset, body.byteLength);
}

function challengeOf(type: string, data: unknown): string {
  return type === 'endpoint.verification' ? String((data as {challenge?: string})?.challenge ?? '') : '';
}

function namesOf(format: Format, prefix: string): {id: string; timestamp: string; signature: string} {
  switch (format) {
    case 'standard': return {id: 'webhook-id', timestamp: 'webhook-timestamp', signature: 'webhook-signature'};
    case 'x-webhook': return {id: 'X-Webhook-Id', timestamp: 'X-Webhook-Timestamp', signature: 'X-Webhook-Signature'};
    case 't-v1': return {id: `${prefix}-Event-Id`, timestamp: '', signature: `${prefix}-Signature`};
    default: return {id: `X-${prefix}-Event-Id`, timestamp: `X-${prefix}-Timestamp`, signature: `X-${prefix}-Signature`};
  }
}

function headerOf(headers: HeaderSource, name: string): string {
  if (typeof (headers as Headers).get === 'function') return (headers as Headers).get(name) ?? '';
  const lower = name.toLowerCase();
  for (const [key, value] of Object.entries(headers as Record<string, string | string[] | undefined>)) {
    if (key.toLowerCase() === lower) return Array.isArray(value) ? value.join(', ') : value ?? '';
  }
  return '';
}

function parseKey(format: Format, secret: string): Key {
  const refuse = (detail: string) => new SignatureError('secret_refused', detail);
  if (format !== 'standard') {
    const length = Buffer.byteLength(secret);
    if (length < 1 || length > 256) throw refuse(`A secret of this format has 1 to 256 bytes; this one has ${length}.`);
    // eslint-disable-next-line no-control-regex
    if (/[\x00-\x1f\x7f]/.test(secret)) throw refuse('The secret contains a line break or another control character.');
    return {hmac: Buffer.from(secret)};
  }
  if (secret.startsWith('whsec_')) {
    const raw = strictBase64(secret.slice(6));
    if (!raw) throw refuse('What follows whsec_ is not base64. Paste the secret whole.');
    if (raw.length < 24 || raw.length > 64) throw refuse(`After whsec_ this secret has ${raw.length} bytes; 24 to 64 are needed.`);
    return {hmac: raw};
  }
  if (secret.startsWith('whpk_') || secret.startsWith('whsk_')) {
    const raw = strictBase64(secret.slice(5));
    const size = secret.startsWith('whpk_') ? 32 : 64;
    if (!raw || raw.length !== size) throw refuse(`What follows ${secret.slice(0, 5)} is not base64 of ${size} bytes. Paste the key whole.`);
    return {public: raw.subarray(size - 32)};
  }
  throw refuse('A secret of the standard format begins with whsec_ (or whpk_ for an ed25519 public key).');
}

/** Base64 as the standard alphabet with padding, and nothing else: Node's own decoder skips what it does not know. */
function strictBase64(text: string): Buffer | undefined {
  const raw = Buffer.from(text, 'base64');
  return raw.toString('base64') === text ? raw : undefined;
}
