package send

import (
	"context"
	"time"

	"posthorn/db/queue"
	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/signature"
)

// Post sends a message that is no delivery, and is recorded nowhere, to the URL of settings. Every secret signs it. It
// returns the result and the start of the response's body. The settings are those that Check returned.
func (ts *Tester) Post(ctx context.Context, settings endpoint.Settings, secrets []string, messageID string, body []byte) (delivery.Result, []byte, error) {
	select {
	case ts.slots <- struct{}{}:
		defer func() { <-ts.slots }()
	case <-ctx.Done():
		return delivery.Result{}, nil, ctx.Err()
	}
	h := newHTTPTransport(ts.guard)
	defer h.close()
	to, err := h.configure(settings)
	if err != nil {
		return delivery.Result{}, nil, err
	}
	d, err := testDestination(settings, to.(*httpAddress), secrets[0])
	if err != nil {
		return delivery.Result{}, nil, err
	}
	for _, text := range secrets[1:] {
		key, err := settings.Wire().ParseKey(text)
		if err != nil {
			return delivery.Result{}, nil, err
		}
		d.signing.Keys = append(d.signing.Keys, key)
	}
	m := signature.Message{EventID: messageID}
	r := &request{
		message:     m,
		body:        body,
		contentType: signature.ContentType,
		headers:     d.signing.Headers(nil, m, body, signature.Send{At: time.Now(), Attempt: 1}),
	}
	a := &queue.Attempt{}
	result, _ := h.challenge(ctx, d, r, challenge{mode: "simple"}, a)
	return result, a.ResponseExcerpt, ctx.Err()
}
