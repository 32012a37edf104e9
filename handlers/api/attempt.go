package api

import (
	"net/http"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/queue"
	"posthorn/domain/access"
	"posthorn/domain/show"
	"posthorn/handlers"
)

// getAttempt responds with one attempt and the request that it sent.
func (a *api) getAttempt(c *handlers.Call) error {
	of := c.PathID("delivery_id")
	attemptID := c.PathID("attempt_id")
	var t show.Attempt
	var r show.Request
	err := c.Tx(func(q *db.Tx) error {
		d, err := deliveries.Read(c.Ctx(), q, c.Actor.Tenant, of)
		if err != nil {
			return err
		}
		if t, err = deliveries.Attempt(c.Ctx(), q, d, attemptID); err != nil {
			return err
		}
		links := queue.Links{BaseURL: a.BaseURL, Keys: a.Keys}
		if !c.Actor.Scopes.Has(access.EventsRead) {
			links.Keys = nil // a header can contain the link
		}
		sent, err := deliveries.ReadSent(c.Ctx(), q, a.Keys, links, d)
		r = sent.Request(t)
		return err
	})
	if err != nil {
		return err
	}
	if !c.Actor.Scopes.Has(access.EventsRead) {
		r.Body = nil
	}
	return c.Answer(http.StatusOK, struct {
		Attempt
		Request SentRequest `json:"request"`
	}{encodeAttempt(t), encodeRequest(t, r)})
}

func encodeRequest(t show.Attempt, r show.Request) SentRequest {
	v := SentRequest{Sent: t.Reached(), Method: r.HTTPMethod(), Headers: []HandoutHeader{}, Timestamp: Time(t.SignedAt())}
	for _, h := range r.Headers {
		v.Headers = append(v.Headers, HandoutHeader{Name: h.Name, Value: h.Value})
	}
	if v.Body.SetNull(); r.Body != nil {
		v.Body.Set(string(r.Body))
	}
	return v
}
