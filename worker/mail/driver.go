// Package mail sends the mails of the outbox: it composes each one and passes it to a provider, once for every purpose.
//
// A mail is claimed by moving its due time ahead, so that the claim of a dead worker expires. A mail that is sent twice
// (the provider accepted it, and the worker died before recording that) has the same idempotency key and the same
// bytes, and the provider delivers it once. A provider that is down or slow delays only mails: the outbox has its own
// goroutines and connections.
package mail

import (
	"context"
	"time"

	"posthorn/domain/id"
	"posthorn/domain/mail"
)

// Message is a mail that is ready to be sent.
type Message struct {
	ID       id.UUID // of its row in the outbox
	Key      string  // its purpose; the same on every try
	Kind     mail.Kind
	From, To string
	Subject  string
	HTML     string
	Text     string
	Headers  map[string]string // in addition to those of every mail
	At       time.Time         // when it was put into the outbox
}

// Driver is a way to send mail. Send returns the provider's own id of the mail; if the provider responded with an
// error, Send's error is a *Refusal. It is safe for concurrent use.
type Driver interface {
	Send(ctx context.Context, m Message) (providerID string, err error)
}

// Refusal is an error response of a provider. Its text contains no secret and is shown to operators.
type Refusal struct {
	Verdict    mail.Verdict
	RetryAfter time.Duration // as the provider requested; 0: no request
	Detail     string
}

func (r *Refusal) Error() string { return r.Detail }

// sendTime bounds one try. It is well below the time of a claim.
const sendTime = 30 * time.Second
