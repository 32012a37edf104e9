// A program of a user. tools/consumers compiles it in every kind of project, with every strict setting.
import {Posthorn, PosthornError, type Input, type Schema} from 'posthorn';
import {webhook as express} from 'posthorn/express';
import {webhook as next} from 'posthorn/next';
import {Verifier, type Webhook} from 'posthorn/webhook';

export async function work(posthorn: Posthorn, tenant: string | undefined): Promise<string> {
  const accepted = await posthorn.emit({type: 'order.completed', data: {order_id: 'ord_1', total: 4200}, idempotency_key: 'ord_1-completed'});
  for await (const delivery of posthorn.iterate('listDeliveries', {status: 'failed'})) {
    try {
      await posthorn.replayDelivery({delivery_id: delivery.id, body: {reason: 'fixed'}});
    } catch (error) {
      if (!(error instanceof PosthornError)) throw error;
    }
  }
  const wanted: Input<'createEndpoint'> = {body: {url: 'https://example.com/hooks', event_types: ['order.*'], verification: 'simple'}};
  const endpoint: Schema<'Endpoint'> = await posthorn.createEndpoint(wanted);
  await posthorn.updateEndpoint({endpoint_id: endpoint.id, body: {rate_limit: null}});
  await posthorn.listEndpoints();
  const other = new Posthorn({url: 'https://posthorn.example.com', key: 'php_x', tenant, timeout: undefined});
  await other.deleteEndpoint({endpoint_id: endpoint.id}, {signal: undefined});
  return accepted.id;
}

export function receive(secret: string, body: Uint8Array): Webhook<{order_id: string}> {
  void express({secret, preset: 'svix', onRejected: (error) => { console.error(error.code); }}, async (event) => { console.log(event.id, event.type, event.data); });
  void next<{order_id: string}>({secret: [secret, 'another']}, (event) => { console.log(event.data.order_id); });
  return new Verifier({secret, format: 'standard'}).verify<{order_id: string}>({'webhook-id': 'x'}, body);
}
