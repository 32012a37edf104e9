import assert from 'node:assert/strict';
import {createServer} from 'node:http';
import {test} from 'node:test';
import {Posthorn, PosthornBatchError, PosthornConnectionError, PosthornError} from '../dist/index.js';

// serve answers each request with the next of the responses: [status, body, headers].
async function serve(t, responses) {
  const requests = [];
  const server = createServer(async (req, res) => {
    let body = '';
    for await (const chunk of req) body += chunk;
    requests.push({method: req.method, url: req.url, headers: req.headers, body: body ? JSON.parse(body) : undefined});
    const [status, answer, headers] = responses[Math.min(requests.length, responses.length) - 1];
    res.writeHead(status, {'Content-Type': 'application/json', ...headers});
    res.end(answer === undefined ? '' : JSON.stringify(answer));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  return {requests, url: `http://127.0.0.1:${server.address().port}`};
}

const problem = (status, code) => ({type: `/docs/errors#${code}`, title: 'x', status, code, detail: 'What to do.', request_id: 'req_1'});

test('an emission without a key gets one, and keeps it when it is repeated', async (t) => {
  const {requests, url} = await serve(t, [[503, problem(503, 'busy'), {'Retry-After': '0'}], [202, {id: 'evt_1'}]]);
  const accepted = await new Posthorn({url, key: 'phk_x', maxPause: 10}).emit({type: 'order.completed', data: {n: 1}});
  assert.equal(accepted.id, 'evt_1');
  assert.equal(requests.length, 2);
  assert.match(requests[0].body.idempotency_key, /^sdk_/);
  assert.deepEqual(requests[0].body, requests[1].body);
  assert.equal(requests[0].headers.authorization, 'Bearer phk_x');
  assert.equal(requests[0].url, '/api/v1/events');
});

test('an error has its code, fields and request id', async (t) => {
  const {url} = await serve(t, [[400, {...problem(400, 'invalid'), errors: [{field: 'url', code: 'url_scheme', detail: 'Use https.'}]}]]);
  await assert.rejects(new Posthorn({url, key: 'phk_x'}).createEndpoint({body: {url: 'ftp://x'}}), (e) => {
    assert.ok(e instanceof PosthornError);
    assert.deepEqual([e.status, e.code, e.requestId, e.fields[0].field], [400, 'invalid', 'req_1', 'url']);
    return true;
  });
});

test('what is not safe is not repeated after an error of the server', async (t) => {
  const {requests, url} = await serve(t, [[502, undefined]]);
  await assert.rejects(new Posthorn({url, key: 'phk_x', maxPause: 10}).createEndpoint({body: {url: 'https://example.com'}}), PosthornError);
  assert.equal(requests.length, 1);
});

test('a server that is away is an error of its own', async () => {
  await assert.rejects(new Posthorn({url: 'http://127.0.0.1:1', key: 'phk_x', retries: 1, maxPause: 10}).listEndpoints(), PosthornConnectionError);
});

test('lists are iterated page after page', async (t) => {
  const {requests, url} = await serve(t, [[200, {data: [{id: 'dlv_1'}, {id: 'dlv_2'}], next_cursor: 'c1'}], [200, {data: [{id: 'dlv_3'}], next_cursor: null}]]);
  const ids = [];
  for await (const d of new Posthorn({url, key: 'php_x', tenant: 'ten_1'}).iterate('listDeliveries', {status: 'failed'})) ids.push(d.id);
  assert.deepEqual(ids, ['dlv_1', 'dlv_2', 'dlv_3']);
  assert.equal(requests[0].url, '/api/v1/tenants/ten_1/deliveries?status=failed');
  assert.match(requests[1].url, /cursor=c1/);
});

test('a batch is split, and says which events were rejected', async (t) => {
  const stored = Array.from({length: 1000}, (_, i) => ({status: 202, id: `evt_${i}`}));
  const {requests, url} = await serve(t, [[202, {results: stored}], [207, {results: [{status: 202, id: 'evt_x'}, {status: 400, code: 'type_malformed', detail: 'No.'}]}]]);
  const events = Array.from({length: 1002}, (_, i) => ({type: 'a.b', data: i}));
  await assert.rejects(new Posthorn({url, key: 'phk_x'}).emitAll(events), (e) => {
    assert.ok(e instanceof PosthornBatchError);
    assert.deepEqual(e.rejected, [1001]);
    assert.equal(e.results.length, 1002);
    return true;
  });
  assert.equal(requests[0].body.events.length, 1000);
});

test('ids that would name another path are rejected', async () => {
  const posthorn = new Posthorn({url: 'https://posthorn.example.com', key: 'phk_x'});
  await assert.rejects(async () => posthorn.getEvent({event_id: '..'}), TypeError);
});
