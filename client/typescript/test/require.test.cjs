// What a CommonJS program gets: every entry point by its name, and a client that emits.
const assert = require('node:assert/strict');
const {createServer} = require('node:http');
const {test} = require('node:test');

test('every entry point can be required', async () => {
  for (const name of ['posthorn', 'posthorn/webhook', 'posthorn/express', 'posthorn/next']) {
    assert.deepEqual(Object.keys(require(name)).sort(), Object.keys(await import(name)).filter((key) => key !== 'default' && key !== 'module.exports').sort(), name);
  }
});

for (const [way, load] of [['require', async () => require('posthorn')], ['import', () => import('posthorn')]]) {
  test(`a client that was loaded with ${way} emits, and repeats what has a key after a 500`, async (t) => {
    const keys = [];
    const server = createServer(async (request, response) => {
      let body = '';
      for await (const chunk of request) body += chunk;
      keys.push(JSON.parse(body).idempotency_key);
      response.writeHead(keys.length === 1 ? 500 : 202, {'Content-Type': 'application/json'});
      response.end(JSON.stringify(keys.length === 1 ? {code: 'internal', detail: 'x'} : {id: 'evt_1'}));
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.after(() => server.close());
    const {Posthorn} = await load();
    const posthorn = new Posthorn({url: `http://127.0.0.1:${server.address().port}`, key: 'phk_x', maxPause: 10});
    assert.equal((await posthorn.emit({type: 'order.completed', data: {n: 1}})).id, 'evt_1');
    assert.match(keys[0], /^sdk_[0-9a-f-]{36}$/);
    assert.deepEqual(keys, [keys[0], keys[0]]);
  });
}
