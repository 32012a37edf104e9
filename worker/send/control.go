package send

import (
	"context"
	"time"

	"posthorn/db/endpoints"
	"posthorn/db/queue"
	"posthorn/domain/delivery"
	"posthorn/domain/signature"
)

// Post sends a message that is no delivery, and is recorded nowhere, to an endpoint, signed as deliveries are. It
// returns the result and the start of the response's body. The settings are those that Check returned.
func (ts *Tester) Post(ctx context.Context, f endpoints.Facts, messageID string, body []byte) (delivery.Result, []byte, error) {
	select {
	case ts.slots <- struct{}{}:
		defer func() { <-ts.slots }()
	case <-ctx.Done():
		return delivery.Result{}, nil, ctx.Err()
	}
	h := newHTTPTransport(ts.guard)
	defer h.close()
	d, err := testDestination(f, h)
	if err != nil {
		return delivery.Result{}, nil, err
	}
	s := &Sender{now: time.Now}
	s.SetBot(f.Bot)
	now := s.now()
	m := signature.Message{EventID: messageID}
	headers := d.signingAt(now).Headers(nil, m, body, signature.Send{At: now, Attempt: 1})
	r := &request{
		message:     m,
		body:        body,
		contentType: signature.ContentType,
		headers:     append(headers, s.publicHeaders(d, body, signature.ContentType, headers, now)...),
	}
	a := &queue.Attempt{}
	result, _ := h.challenge(ctx, d, r, challenge{mode: "simple"}, a)
	return result, a.ResponseExcerpt, ctx.Err()
}
