// Package client is Posthorn's SDK for Go. It emits events, shows their deliveries, manages endpoints, and verifies
// webhooks in the receiver.
//
//	c, err := client.New("https://posthorn.example.com", os.Getenv("POSTHORN_API_KEY"))
//	...
//	event, err := client.NewEmission("order.completed", order)
//	accepted, err := c.Emit(ctx, event)
//
// # Operations
//
// Every operation of the API is a method of [Client], named as in the OpenAPI document, with typed input and output.
// [Client.Emit] and [Client.EmitAll] add an idempotency key and retry. [Client.Events], [Client.Deliveries],
// [Client.Endpoints], and the other iterators fetch a list page by page. [Client.Tenant] is for platform keys.
//
// Optional fields are pointers; new("text") makes one. Fields that can be null are [Nullable]: set them with [Value]
// and [Null], and read them with Get.
//
// # Errors
//
// An error response is an [*Error] with a stable code, a sentence that says how to fix the problem, the fields that are
// wrong, and the request's id. [Code] returns the code of any error.
//
// # Retries
//
// Reads and emissions are retried after a 429, 500, 502, 503, or 504 and after a network error: at most five times,
// unless [WithRetries] says otherwise, with growing pauses, and not before the time in Retry-After. Other requests are
// retried only if the first one can't have had an effect: after a 429, and if no connection was established.
//
// # Receive webhooks
//
// [Verify] checks a webhook in the standard format. A [Verifier] checks any format, with several secrets during a
// rotation, and parses the event.
package client
