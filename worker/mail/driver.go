// Package mail empties the outbox: it composes what waits there and hands it to a provider, once for every purpose.
//
// A mail is claimed by moving its due time ahead, so that the claim of a dead worker expires. A mail that is sent twice
// (the provider accepted it, and the worker died before recording that) carries the same idempotency key and the same
// bytes, and the provider makes one mail of it. A provider that is down or slow delays only mails: the outbox has its
// own goroutines and connections.
package mail

import (
	"context"
	"time"

	"posthorn/domain/id"
	"posthorn/domain/mail"
)

// Message is a mail that is ready to leave.
type Message struct {
	ID       id.UUID // of its row in the outbox
	Key      string  // what it is for; the same on every try
	Kind     mail.Kind
	From, To string
	Subject  string
	HTML     string
	Text     string
	Headers  map[string]string // besides those of every mail
	At       time.Time         // when it was put into the outbox
}

// Driver is a way by which mail leaves. Send returns the provider's own id of the mail; its error is a *Refusal
// wherever the provider said something. It is safe for concurrent use.
type Driver interface {
	Send(ctx context.Context, m Message) (providerID string, err error)
}

// Refusal is a provider's response that is no success. Its text holds no secret and is shown to operators.
type Refusal struct {
	Verdict    mail.Verdict
	RetryAfter time.Duration // asked for by the provider; 0 says nothing
	Detail     string
}

func (r *Refusal) Error() string { return r.Detail }

// sendTime bounds one try. It is well within a claim.
const sendTime = 30 * time.Second
