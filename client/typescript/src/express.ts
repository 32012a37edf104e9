import {SignatureError, Verifier, type VerifierOptions, type Webhook} from './webhook.js';
import type {IncomingMessage, ServerResponse} from 'node:http';

/** Settings of the handler. */
export interface HandlerOptions extends VerifierOptions {
  /** The largest body that is read, in bytes. Default 2 MiB. */
  maxBody?: number | undefined;
  /** Is called for a request that is rejected. Default: nothing. */
  onRejected?: ((error: SignatureError) => void) | undefined;
}

/**
 * A handler for Express, or for Node's own http server. Mount it before any body parser:
 *
 *     app.post('/webhooks', webhook({secret: process.env.WEBHOOK_SECRET}, async (event) => { ... }));
 *
 * It responds 200 when your function returns, 500 when it throws (the delivery is retried), 401 to a wrong signature. It
 * answers the verification of the endpoint by itself.
 */
export function webhook<Data = unknown>(options: HandlerOptions, handle: (event: Webhook<Data>) => Promise<void> | void) {
  const verifier = new Verifier(options);
  const most = options.maxBody ?? 2 << 20;
  return async (request: IncomingMessage & {body?: unknown}, response: ServerResponse, next?: (error: unknown) => void): Promise<void> => {
    const finish = (status: number, text = '') => { response.statusCode = status; response.end(text); };
    let event: Webhook<Data>;
    try {
      event = verifier.verify<Data>(request.headers, await read(request, most));
    } catch (error) {
      if (!(error instanceof SignatureError)) { next ? next(error) : finish(400); return; }
      options.onRejected?.(error);
      finish(error.code === 'body_too_large' ? 413 : 401, error.code);
      return;
    }
    if (event.challenge) { finish(200, event.challenge); return; }
    try {
      await handle(event);
      finish(200);
    } catch (error) {
      if (next) next(error);
      else finish(500);
    }
  };
}

async function read(request: IncomingMessage & {body?: unknown}, most: number): Promise<Buffer> {
  if (Buffer.isBuffer(request.body)) return request.body; // express.raw() ran before
  if (request.body !== undefined && request.readableEnded) {
    throw new SignatureError('body_parsed', 'A body parser ran before the webhook handler, and the exact bytes are lost. Mount the handler first, or use express.raw().');
  }
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += (chunk as Buffer).length;
    if (size > most) throw new SignatureError('body_too_large', `The body has more than ${most} bytes.`);
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}
