import {SignatureError, Verifier, type VerifierOptions, type Webhook} from './webhook.js';

/**
 * A route handler for Next.js, or for anything that speaks fetch's Request and Response (Hono, Remix, Deno, Bun):
 *
 *     export const POST = webhook({secret: process.env.WEBHOOK_SECRET!}, async (event) => { ... });
 *
 * It responds 200 when your function returns, 500 when it throws (the delivery is retried), 401 to a wrong signature. It
 * answers the verification of the endpoint by itself.
 */
export function webhook<Data = unknown>(options: VerifierOptions, handle: (event: Webhook<Data>) => Promise<void> | void) {
  const verifier = new Verifier(options);
  return async (request: Request): Promise<Response> => {
    let event: Webhook<Data>;
    try {
      event = verifier.verify<Data>(request.headers, new Uint8Array(await request.arrayBuffer()));
    } catch (error) {
      if (error instanceof SignatureError) return new Response(error.code, {status: 401});
      throw error;
    }
    if (event.challenge) return new Response(event.challenge);
    await handle(event);
    return new Response(null, {status: 200});
  };
}
