// Emits an event, lists and replays its delivery, and verifies what arrives.
import {createServer} from 'node:http';
import {Posthorn} from 'posthorn';
import {webhook} from 'posthorn/express';

const posthorn = new Posthorn({url: process.env.POSTHORN_URL, key: process.env.POSTHORN_API_KEY});

// The receiver. Its handler has the endpoint's secret once the endpoint exists.
let handler = (request, response) => response.writeHead(503).end();
const server = createServer((request, response) => handler(request, response));
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const arrived = [];
let wake = () => {};

const endpoint = await posthorn.createEndpoint({
  body: {url: `http://127.0.0.1:${server.address().port}`, event_types: ['order.*'], verification: 'simple'},
});
handler = webhook({secret: endpoint.secret}, (event) => { arrived.push(event); wake(); });
async function next() {
  while (arrived.length === 0) await new Promise((resolve) => { wake = resolve; });
  return arrived.shift();
}
async function until(read, done) {
  for (;;) {
    const value = await read();
    if (done(value)) return value;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

try {
  await until(() => posthorn.getEndpoint({endpoint_id: endpoint.id}), (e) => e.status === 'active');
  const accepted = await posthorn.emit({type: 'order.completed', data: {order_id: 'ord_1', total: 4200}});
  console.log('emitted', accepted.id);
  const event = await next();
  console.log('verified', event.id, JSON.stringify(event.data));
  const delivery = await until(async () => {
    for await (const d of posthorn.iterate('listEventDeliveries', {event_id: accepted.id})) return d;
  }, (d) => d?.status === 'delivered');
  console.log('listed', delivery.id, delivery.status);
  const again = await posthorn.replayDelivery({delivery_id: delivery.id, body: {reason: 'to see it again'}});
  console.log('replayed as', again.id);
  console.log('verified', (await next()).id);
  const batch = await posthorn.emitAll(Array.from({length: 1500}, (_, n) => ({type: 'invoice.paid', data: {n}})));
  console.log('batch', batch.length);
} finally {
  await posthorn.deleteEndpoint({endpoint_id: endpoint.id});
  server.close();
  server.closeAllConnections();
}
