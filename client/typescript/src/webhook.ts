import {createHmac, createPublicKey, timingSafeEqual, verify as verifyEd25519} from 'node:crypto';

/** The wire formats of an endpoint: see its `format` setting. */
export type Format = 'standard' | 'x-webhook' | 't-v1' | 'body-hex' | 'raw' | 'template';

/** Headers of a request: of fetch, of Node, or a plain object. Names are looked up whatever their case. */
export type HeaderSource = Headers | Record<string, string | string[] | undefined>;

/** How another sender's receivers expect their webhooks: see the endpoint's `preset` setting. */
export type Preset = 'svix' | 'standard-webhooks' | 'stripe' | 'github' | 'shopify' | 'slack';

/** The part of an endpoint's `wire` setting that a receiver needs, as the API shows it. */
export interface Wire {
  body?: 'envelope' | 'payload';
  header_prefix?: string;
  header_names?: Partial<Record<string, string>>;
  signature?: {value: string; content: string; algorithm?: string; key?: string};
}

const presets: Record<Preset, {format: Format; prefix?: string; wire: Wire}> = {
  svix: {format: 'standard', wire: {body: 'payload', header_prefix: 'svix-'}},
  'standard-webhooks': {format: 'standard', wire: {body: 'payload'}},
  stripe: {format: 't-v1', prefix: 'Stripe', wire: {body: 'payload'}},
  github: {
    format: 'template',
    wire: {
      body: 'payload', header_prefix: 'X-GitHub-', header_names: {signature: 'X-Hub-Signature-256', timestamp: ''},
      signature: {value: 'sha256={hex}', content: '{body}'},
    },
  },
  shopify: {
    format: 'template',
    wire: {
      body: 'payload', header_prefix: 'X-Shopify-', signature: {value: '{base64}', content: '{body}'},
      header_names: {
        signature: 'X-Shopify-Hmac-Sha256', event: 'X-Shopify-Topic', id: 'X-Shopify-Event-Id', delivery: 'X-Shopify-Webhook-Id', timestamp: '',
      },
    },
  },
  slack: {
    format: 'template',
    wire: {
      body: 'payload', header_prefix: 'X-Slack-', header_names: {timestamp: 'X-Slack-Request-Timestamp'},
      signature: {value: 'v0={hex}', content: 'v0:{ts}:{body}'},
    },
  },
};

export interface VerifierOptions {
  /** The endpoint's secret, or several: during a rotation, list the old and the new one. */
  secret: string | string[];
  /** Default `standard`. */
  format?: Format | undefined;
  /** The endpoint's header prefix. Default `Webhook`. */
  prefix?: string | undefined;
  /** In place of `format` and `prefix`. */
  preset?: Preset | undefined;
  /** The endpoint's `wire` setting, as the API shows it. */
  wire?: Wire | undefined;
  /** How far the signature's time can be from this machine's clock, in seconds. Default 300; negative: any time. */
  tolerance?: number | undefined;
  /** The current time in milliseconds. Default `Date.now`. */
  now?: (() => number) | undefined;
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
  readonly #names: Names;
  readonly #bare: boolean;
  readonly #template: Template | undefined;
  readonly #keys: Key[];
  readonly #tolerance: number;
  readonly #now: () => number;

  constructor(options: VerifierOptions) {
    if (options.preset !== undefined && !Object.hasOwn(presets, options.preset)) {
      throw new SignatureError('preset_unknown', `There is no such preset. Use ${Object.keys(presets).join(', ')}.`);
    }
    const preset = options.preset === undefined ? undefined : presets[options.preset];
    const wire = options.wire ?? preset?.wire ?? {};
    this.#format = preset?.format ?? options.format ?? 'standard';
    if (!['standard', 'x-webhook', 't-v1', 'body-hex', 'raw', 'template'].includes(this.#format)) {
      throw new SignatureError('format_unknown', 'Use standard, x-webhook, t-v1, body-hex, raw or template.');
    }
    this.#prefix = (preset ? preset.prefix : options.prefix) || 'Webhook';
    this.#names = namesOf(this.#format, this.#prefix, wire);
    this.#bare = this.#format === 'raw' || (wire.body ?? (this.#format === 'template' ? 'payload' : 'envelope')) === 'payload';
    this.#template = this.#format === 'template' ? new Template(wire.signature) : undefined;
    this.#tolerance = options.tolerance ?? 300;
    this.#now = options.now ?? Date.now;
    const secrets = [options.secret].flat();
    if (secrets.length === 0) throw new SignatureError('secret_refused', 'Give at least one secret to verify with.');
    this.#keys = secrets.map((s) => this.#template ? this.#template.key(s) : parseKey(this.#format, s));
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
    const names = this.#names;
    const need = (name: string) => {
      const value = headerOf(headers, name);
      if (!value) throw new SignatureError('header_missing', `The request has no ${name} header. Check whether a proxy removed it, and whether the format is the right one.`, name);
      return value;
    };
    const signature = need(names.signature);
    if (this.#template) {
      this.#checkTemplate(this.#template, signature, need, body);
      return;
    }
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

  #checkTemplate(template: Template, signature: string, need: (name: string) => string, body: Buffer): void {
    const names = this.#names;
    const shown = template.read(signature);
    if (shown === undefined) throw new SignatureError('signature_scheme_unknown', `The signature has not the shape ${template.value}.`, names.signature);
    const id = template.content.includes('{id}') ? need(names.id) : '';
    const stamp = template.content.includes('{ts}') && !template.value.includes('{ts}') ? need(names.timestamp) : shown;
    if (stamp) this.#checkAge(stamp, names.timestamp || names.signature);
    const given = Buffer.from(signature);
    for (const key of this.#keys) {
      const want = Buffer.from(template.sign(key.hmac!, id, stamp, body));
      if (want.length === given.length && timingSafeEqual(want, given)) return;
    }
    throw new SignatureError('signature_mismatch', "No signature matches. Check that the secret is this endpoint's, and that the body is the exact bytes received.", names.signature);
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
    if (this.#bare) {
      const named = (name: string) => name ? get(name) : '';
      const type = named(this.#names.event);
      return {id: named(this.#names.id), deliveryId: named(this.#names.delivery), type, timestamp: undefined, version: '', data: parsed, challenge: challengeOf(type, parsed)};
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

type Names = Record<'id' | 'timestamp' | 'signature' | 'event' | 'delivery', string>;

function namesOf(format: Format, prefix: string, wire: Wire): Names {
  const x = `X-${prefix}-`;
  let names: Names = {id: `${x}Event-Id`, timestamp: `${x}Timestamp`, signature: `${x}Signature`, event: `${x}Event`, delivery: `${x}Delivery`};
  switch (format) {
    case 'standard': names = {id: 'webhook-id', timestamp: 'webhook-timestamp', signature: 'webhook-signature', event: '', delivery: ''}; break;
    case 'x-webhook': names = {id: 'X-Webhook-Id', timestamp: 'X-Webhook-Timestamp', signature: 'X-Webhook-Signature', event: '', delivery: 'X-Delivery-Id'}; break;
    case 't-v1': names = {id: `${prefix}-Event-Id`, timestamp: '', signature: `${prefix}-Signature`, event: `${prefix}-Event-Type`, delivery: ''}; break;
    case 'body-hex': names.delivery = ''; break;
    default:
  }
  const start = wire.header_prefix ?? '';
  for (const role of Object.keys(names) as (keyof Names)[]) {
    if (start && names[role]) names[role] = start + (start === start.toLowerCase() ? role : role[0]!.toUpperCase() + role.slice(1));
    names[role] = wire.header_names?.[role] ?? names[role];
  }
  return names;
}

/** A signature in a sender's own notation, such as `sha256={hex}` over `{body}`. */
class Template {
  readonly value: string;
  readonly content: string;
  readonly #algorithm: string;
  readonly #base64Key: boolean;
  readonly #pattern: RegExp;

  constructor(settings: Wire['signature']) {
    if (!settings) throw new SignatureError('wire_template_missing', "The format template needs wire: its signature's value and content.");
    this.value = settings.value;
    this.content = settings.content;
    this.#base64Key = settings.key === 'base64';
    this.#algorithm = (settings.algorithm || 'hmac-sha256').replace(/^hmac-/, '');
    if (!['sha1', 'sha256', 'sha512'].includes(this.#algorithm)) {
      throw new SignatureError('wire_template_malformed', 'The algorithm is hmac-sha256, hmac-sha512 or hmac-sha1.');
    }
    const literal = this.value.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    this.#pattern = new RegExp(`^${literal.replace('\\{ts\\}', '(?<ts>.+?)').replace('\\{hex\\}', '(?:.+?)').replace('\\{base64\\}', '(?:.+?)')}$`, 's');
  }

  key(secret: string): Key {
    if (!this.#base64Key) return parseKey('template', secret);
    const raw = strictBase64(secret.replace(/^whsec_/, ''));
    if (!raw || raw.length < 1 || raw.length > 256) throw new SignatureError('secret_refused', 'The secret is not base64 of 1 to 256 bytes. Paste the secret whole.');
    return {hmac: raw};
  }

  /** The time in a header's value, or empty where there is none; undefined where the value has not the template's shape. */
  read(value: string): string | undefined {
    const found = this.#pattern.exec(value);
    return found ? found.groups?.ts ?? '' : undefined;
  }

  sign(key: Buffer, id: string, stamp: string, body: Buffer): string {
    const fill = (text: string) => Buffer.from(text.replace(/\{id\}|\{ts\}/g, (name) => name === '{id}' ? id : stamp));
    const [before = '', after = ''] = this.content.split('{body}');
    const sum = createHmac(this.#algorithm, key).update(fill(before)).update(body).update(fill(after)).digest();
    return this.value.replace(/\{(ts|hex|base64)\}/g, (_, name) => name === 'ts' ? stamp : sum.toString(name));
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
