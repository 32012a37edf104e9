// The unmodified client of the AI SDK against a server that runs: it lists, subscribes, receives, verifies, refreshes,
// rotates, and unsubscribes.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { createMCPClient, experimental_createMCPEventWebhook } from '@ai-sdk/mcp';

const { POSTHORN_URL: url, POSTHORN_KEY: key } = process.env;
const authorization = { Authorization: `Bearer ${key}` };

const rows = new Map();
const store = {
  get: async k => rows.get(k),
  getById: async id => [...rows.values()].find(r => r.id === id),
  set: async row => void rows.set(row.key, row),
  update: async (k, patch) => void rows.set(k, { ...rows.get(k), ...patch }),
  delete: async k => void rows.delete(k),
};

const events = [];
let wake = () => {};
const webhook = experimental_createMCPEventWebhook({
  store,
  onEvent: async ({ event }) => {
    events.push(event);
    wake();
  },
  onError: error => console.error(error),
});
const statuses = [];
const server = createServer(async (req, res) => {
  const chunks = [];
  for await (const chunk of req) chunks.push(chunk);
  const answer = await webhook(
    new Request(`http://127.0.0.1${req.url}`, { method: req.method, headers: req.headers, body: Buffer.concat(chunks) }),
  );
  statuses.push(answer.status);
  res.writeHead(answer.status, Object.fromEntries(answer.headers));
  res.end(Buffer.from(await answer.arrayBuffer()));
});
await new Promise(done => server.listen(0, '127.0.0.1', done));

async function post(path, body) {
  const answer = await fetch(`${url}/api/v1${path}`, {
    method: 'POST',
    headers: { ...authorization, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });
  assert.ok(answer.ok, `${path}: ${answer.status} ${await answer.clone().text()}`);
  return answer.json();
}
const emit = n => post('/events', { type: 'incident.created', data: { severity: 'P1', n } });
async function received(n) {
  while (events.length < n) await new Promise(done => (wake = done));
  return events.map(e => e.data.n);
}

await post('/event-types', {
  name: 'incident.created',
  schema: { type: 'object', properties: { severity: { type: 'string' }, n: { type: 'integer' } } },
});
const client = await createMCPClient({
  transport: { type: 'http', url: `${url}/mcp`, headers: authorization },
  experimental_events: { store },
});
assert.ok('explain_delivery' in (await client.tools()), 'the tools are listed');

const { events: types } = await client.experimental_events.list();
assert.deepEqual(types.map(t => t.name), ['incident.created']);

const delivery = { mode: 'webhook', url: `http://127.0.0.1:${server.address().port}/hook`, allowInsecureLocalhost: true };
const made = await client.experimental_events.subscribe({ name: 'incident.created', arguments: { severity: 'P1' }, delivery });
assert.ok(made.id && made.refreshBefore && made.cursor && !made.truncated);
await post('/events', { type: 'incident.created', data: { severity: 'P2', n: 0 } });
await emit(1);
assert.deepEqual(await received(1), [1]);

// While a refresh is not stored yet, the client responds with 503, and wants the event again soon.
const row = await store.getById(made.id);
await store.update(row.key, { status: 'pending' });
await emit(2);
while (!statuses.includes(503)) await new Promise(done => setTimeout(done, 20));
const again = await client.experimental_events.refresh({ id: made.id });
assert.equal(again.id, made.id);
assert.deepEqual(await received(2), [1, 2]);

const before = (await store.getById(made.id)).delivery;
await store.update(row.key, { delivery: { ...before, secret: `whsec_${randomBytes(32).toString('base64')}` } });
await client.experimental_events.refresh({ id: made.id });
await emit(3);
assert.deepEqual(await received(3), [1, 2, 3]);

await client.experimental_events.unsubscribe({ id: made.id });
assert.equal(rows.size, 0);
await assert.rejects(client.experimental_events.refresh({ id: made.id }));
await client.close();
server.close();
console.log('scenario done');
