import assert from 'node:assert/strict';
import {createHmac} from 'node:crypto';
import {readFile} from 'node:fs/promises';
import {createServer} from 'node:http';
import {test} from 'node:test';
import {SignatureError, Verifier} from '../dist/index.js';
import {webhook as express} from '../dist/express.js';
import {webhook as next} from '../dist/next.js';

// Signatures that other implementations made. The server's own tests read the same file.
const corpus = JSON.parse(await readFile(new URL('../../../domain/signature/testdata/vectors.json', import.meta.url)));
const schemes = {
  standard_webhooks_v1: {format: 'standard', signature: 'webhook-signature'},
  standard_webhooks_v1a_ed25519: {format: 'standard', signature: 'webhook-signature'},
  x_webhook_signature_v1_hex: {format: 'x-webhook', signature: 'X-Webhook-Signature'},
  stripe_style_t_v1: {format: 't-v1', prefix: 'X-Webhook', signature: 'X-Webhook-Signature'},
  body_only_hex: {format: 'body-hex', prefix: 'Hub', signature: 'X-Hub-Signature', from: 'raw_hex'},
};

function bodyOf({utf8, b64, repeat}) {
  if (utf8 !== undefined) return Buffer.from(utf8);
  if (b64 !== undefined) return Buffer.from(b64, 'base64');
  return Buffer.from(repeat.unit.repeat(repeat.count));
}

for (const [name, {vectors}] of Object.entries(corpus.schemes)) {
  const {format, prefix, signature, from} = schemes[name];
  for (const v of vectors) {
    test(`${name}: ${v.name}`, () => {
      const headers = {'x-webhook-timestamp': String(v.timestamp), ...v.headers, [signature]: v.headers[from ?? signature]};
      const seconds = Number(v.headers['webhook-timestamp'] ?? v.timestamp ?? 0);
      const secrets = [...(v.secrets ?? []), ...(v.symmetric_secrets ?? []), ...(v.secret_keys ?? []), ...(v.public_keys ?? [])];
      assert.ok(secrets.length > 0);
      for (const secret of secrets) {
        const verifier = new Verifier({secret, format, prefix, now: () => seconds * 1000});
        verifier.check(headers, bodyOf(v.body));
        assert.throws(() => verifier.check(headers, Buffer.concat([bodyOf(v.body), Buffer.from(' ')])), {code: 'signature_mismatch'});
      }
    });
  }
}

const paid = '{"type":"invoice.paid","timestamp":"2026-01-02T03:04:05.678901Z","data":{"id":"inv_1","amount":1250}}';
const bases = {
  standard_webhooks_v1: {
    secret: 'whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=',
    headers: {'webhook-id': 'msg_2KWPBgLlAfxdpx2AI54pPJ85f4W', 'webhook-timestamp': '1700000000', 'webhook-signature': 'v1,wp6vdYhzfYxt4p5UcvB0o8yICTSmkjc3RrOACvT/2Lk='},
  },
  stripe_style_t_v1: {
    secret: 'whsec_c2VjcmV0LW9uZQ',
    headers: {'x-webhook-signature': 't=1700000000,v1=a8e30efce62a4457c1fa3486410ec51e14cda21247c3d1461c41a1730cac6789'},
  },
};

for (const c of corpus.verify_cases) {
  test(`${c.scheme}: ${c.change}`, () => {
    const {format, prefix} = schemes[c.scheme];
    const base = bases[c.scheme];
    const headers = {...base.headers};
    for (const [name, value] of Object.entries(c.headers)) {
      delete headers[name.toLowerCase()];
      if (value !== null) headers[name.toLowerCase()] = value;
    }
    const body = Buffer.from(paid);
    if (c.change === 'one byte of body changed') body[body.length >> 1] ^= 1;
    const verify = () => new Verifier({secret: base.secret, format, prefix, now: () => c.now * 1000}).check(headers, body);
    if (c.expect === 'accept') verify();
    else assert.throws(verify, SignatureError);
  });
}

for (const c of corpus.secret_format_cases) {
  test(`secret: ${c.why}`, () => {
    const parse = () => new Verifier({secret: c.secret});
    if (c.expect === 'accept') parse();
    else assert.throws(parse, (e) => e.code === 'secret_refused' && !(c.secret.length > 10 && e.message.includes(c.secret.slice(6))));
  });
}

const signed = {secret: bases.standard_webhooks_v1.secret, now: () => 1_700_000_000_000};

test('an event has its parts', () => {
  const event = new Verifier(signed).verify(new Headers(bases.standard_webhooks_v1.headers), paid);
  assert.deepEqual(event.data, {id: 'inv_1', amount: 1250});
  assert.equal(event.type, 'invoice.paid');
  assert.equal(event.timestamp.toISOString(), '2026-01-02T03:04:05.678Z');
});

test('the handler for Express responds 200, 401 to a wrong signature, and 500 when it throws', async (t) => {
  const seen = [];
  const server = createServer(express(signed, (event) => {
    seen.push(event.type);
    if (seen.length > 1) throw new Error('no');
  }));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const post = (body) => fetch(`http://127.0.0.1:${server.address().port}/`, {method: 'POST', headers: bases.standard_webhooks_v1.headers, body});
  assert.equal((await post(paid)).status, 200);
  assert.equal((await post(paid + ' ')).status, 401);
  assert.equal((await post('x'.repeat(3 << 20))).status, 413);
  assert.equal((await post(paid)).status, 500);
  assert.deepEqual(seen, ['invoice.paid', 'invoice.paid']);
});

test('the handler for Next responds 200, and 401 to a wrong signature', async () => {
  const seen = [];
  const post = next(signed, (event) => { seen.push(event.type); });
  const request = (body) => new Request('http://example.com/', {method: 'POST', headers: bases.standard_webhooks_v1.headers, body});
  assert.equal((await post(request(paid))).status, 200);
  assert.equal((await post(request(paid + ' '))).status, 401);
  assert.deepEqual(seen, ['invoice.paid']);
});

const presets = JSON.parse(await readFile(new URL('../../../domain/signature/testdata/presets.json', import.meta.url))).vectors;
for (const v of presets) {
  test(`the published vector of ${v.name}`, () => {
    const verifier = new Verifier({secret: v.secret, preset: v.preset, now: () => v.at * 1000});
    verifier.check(v.headers, v.body);
    assert.throws(() => verifier.check(v.headers, v.body + ' '), {code: 'signature_mismatch'});
    if (v.at) assert.throws(() => new Verifier({secret: v.secret, preset: v.preset, now: () => (v.at + 301) * 1000}).check(v.headers, v.body), {code: 'timestamp_too_old'});
  });
}

test("an endpoint's wire settings are known", () => {
  const wire = {
    body: 'payload', header_names: {signature: 'X-Convoy-Signature', id: 'X-Convoy-Idempotency-Key', event: 'X-Topic'},
    signature: {value: 't={ts},v1={hex}', content: '{ts},{body}', algorithm: 'hmac-sha512'},
  };
  const body = '{"n": 1}';
  const digest = createHmac('sha512', 'a secret').update('1700000000,' + body).digest('hex');
  const headers = {'x-convoy-signature': `t=1700000000,v1=${digest}`, 'X-Convoy-Idempotency-Key': 'order-1', 'X-Topic': 'order.paid'};
  const verifier = new Verifier({secret: ['another', 'a secret'], format: 'template', wire, now: () => 1_700_000_000_000});
  const got = verifier.verify(headers, body);
  assert.deepEqual([got.id, got.type, got.data], ['order-1', 'order.paid', {n: 1}]);
  for (const [value, code] of [
    [digest, 'signature_scheme_unknown'], ['', 'header_missing'], [`t=1699999000,v1=${digest}`, 'timestamp_too_old'], [`t=1700000001,v1=${digest}`, 'signature_mismatch'],
  ]) assert.throws(() => verifier.verify({...headers, 'x-convoy-signature': value}, body), {code});
  assert.throws(() => new Verifier({secret: 'x', format: 'template'}), {code: 'wire_template_missing'});
  assert.throws(() => new Verifier({secret: 'x', preset: 'nobody'}), {code: 'preset_unknown'});
});
