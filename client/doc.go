// Package client is Posthorn's SDK for Go: it emits events, reads what became of them, manages endpoints, and
// verifies webhooks on the receiving side.
//
//	c, err := client.New("https://posthorn.example.com", os.Getenv("POSTHORN_API_KEY"))
//	...
//	event, err := client.NewEmission("order.completed", order)
//	accepted, err := c.Emit(ctx, event)
//
// # Operations
//
// Every operation of the API is a method of [Client], named as in the OpenAPI document, with its types. Beside them
// stand [Client.Emit] and [Client.EmitAll], which are safe to repeat and repeat themselves; the iterators
// [Client.Events], [Client.Deliveries], [Client.Endpoints] and so on, which fetch page after page; and
// [Client.Tenant], for platform keys.
//
// Optional fields are pointers (new("text") makes one), fields that may be null are [Nullable]: [Value] and [Null]
// make them, Get reads them.
//
// # Errors
//
// A refusal is an [*Error] with the problem's stable code, a sentence that says how to fix it, the fields concerned
// and the request's id. [Code] reads the code of any error.
//
// # Repeating
//
// Requests that change nothing, and emissions, are repeated after a 429, 502, 503 or 504 and after a network error:
// five times at most unless [WithRetries] says otherwise, with growing pauses, not before the server's Retry-After.
// Other requests are repeated only where nothing can have happened: after a 429, and when no connection came about.
//
// # Receiving
//
// [Verify] checks a webhook in the standard format; a [Verifier] does so in any format, with several secrets during
// a rotation, and reads the event.
package client
