package api

import (
	"net/http"
	"strings"
	"time"

	"github.com/oapi-codegen/nullable"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/domain/signature"
	"posthorn/handlers"
)

func (a *api) listDeliveries(c *handlers.Call) error {
	p, err := c.Page(handlers.Deliveries)
	if err != nil {
		return err
	}
	return a.answerDeliveries(c, p, p.Deliveries(), nil)
}

// listEventDeliveries lists the deliveries of an event. It leaves out archived ones, as every list does.
func (a *api) listEventDeliveries(c *handlers.Call) error {
	eventID := c.PathID("event_id")
	p, err := c.Page(handlers.List{Name: "event-deliveries"})
	if err != nil {
		return err
	}
	list := p.Deliveries()
	list.Event = eventID
	return a.answerDeliveries(c, p, list, func(q *db.Tx) error {
		return deliveries.FindEvent(c.Ctx(), q, c.Actor.Tenant, eventID)
	})
}

func (a *api) answerDeliveries(c *handlers.Call, p handlers.Page, list deliveries.ListOptions, first func(*db.Tx) error) error {
	var page deliveries.Page
	err := c.Tx(func(q *db.Tx) (err error) {
		if first != nil {
			if err := first(q); err != nil {
				return err
			}
		}
		page, err = deliveries.List(c.Ctx(), q, c.Actor.Tenant, list)
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, DeliveryPage{Data: views(page.Rows, encodeDelivery), NextCursor: cursorOrNull(p.Cursor(page.Next))})
}

// attemptsShown bounds the attempts in a response. Only a delivery that was probed for long has as many.
const attemptsShown = 250

func (a *api) getDelivery(c *handlers.Call) error {
	deliveryID := c.PathID("delivery_id")
	var d show.Delivery
	var attempts []show.Attempt
	var expunged bool
	err := c.Tx(func(q *db.Tx) (err error) {
		if d, err = deliveries.Read(c.Ctx(), q, c.Actor.Tenant, deliveryID); err != nil {
			return err
		}
		if attempts, err = deliveries.Attempts(c.Ctx(), q, d, attemptsShown); err != nil {
			return err
		}
		expunged, err = deliveries.DataExpunged(c.Ctx(), q, d)
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, struct {
		Delivery
		Attempts        []Attempt `json:"attempts"`
		PayloadExpunged bool      `json:"payload_expunged"`
	}{encodeDelivery(d), views(attempts, encodeAttempt), expunged})
}

func encodeDelivery(d show.Delivery) Delivery {
	v := Delivery{
		ID:            id.Delivery.Format(d.ID),
		EventID:       id.Event.Format(d.EventID),
		EventType:     d.EventType,
		EndpointID:    id.Endpoint.Format(d.Endpoint.ID),
		EndpointName:  d.Endpoint.Name(),
		Status:        DeliveryStatus(d.Status.String()),
		Reason:        orNullText(d.Reason.String()),
		AttemptCount:  d.Attempts,
		LastStatus:    orNullStatus(d.Last),
		LastFailure:   orNullText(d.Last.Failure.String()),
		NextAttemptAt: orNullTime(d.NextAt),
		ExpiresAt:     orNullTime(d.ExpiresAt),
		CreatedAt:     Time(d.CreatedAt),
		SettledAt:     orNullTime(d.SettledAt),
		ArchivedAt:    orNullTime(d.ArchivedAt),
		ReplayOf:      orNullID(id.Delivery, d.ReplayOf),
		ReplayedBy:    orNullID(id.Delivery, d.ReplayedBy),
		DeadLetter:    d.DeadLetter,
		JobID:         orNullID(id.Job, d.JobID),
		PausedBy:      orNullText(string(d.PausedBy())),
		PausedSince:   orNullTime(d.PausedSince),
	}
	if v.ReplayedAt.SetNull(); !d.ReplayedBy.IsZero() {
		v.ReplayedAt.Set(Time(d.ReplayedBy.Time()))
	}
	if v.Wait.SetNull(); d.Wait.Reason != "" {
		v.Wait.Set(encodeWait(d.Wait))
	}
	return v
}

// encodeWait says why a delivery waits.
func encodeWait(w condition.Wait) DeliveryWait {
	v := DeliveryWait{
		Reason:      WaitReason(w.Reason),
		Detail:      w.Detail(),
		Since:       orNullTime(w.Since),
		Until:       orNullTime(w.Until),
		Approximate: w.About,
		Behind:      orNullID(id.Delivery, w.Behind),
	}
	if v.PausedScope.SetNull(); w.Reason == condition.OperatorPause {
		v.PausedScope.Set(string(w.Scope))
	}
	return v
}

// encodeAttempt shows the response as text: bytes that are not UTF-8 become the replacement character.
func encodeAttempt(t show.Attempt) Attempt {
	us := func(d time.Duration) int { return int(d.Microseconds()) }
	kept, _, _ := strings.Cut(t.Signature, "\n\n") // without further headers
	wire := signature.ParseWire(t.Format, "")
	v := Attempt{
		ID:              id.Attempt.Format(t.ID),
		Number:          t.Number,
		Late:            t.Late,
		Status:          orNullStatus(t.Result),
		Failure:         orNullText(t.Result.Failure.String()),
		Error:           orNullText(t.Error),
		StartedAt:       Time(t.StartedAt),
		URL:             t.URL,
		Format:          string(wire.Format),
		Signature:       kept,
		ResponseHeaders: orNullText(t.Headers),
		Phases: Phases{
			DNSUs:     us(t.Phases.DNS),
			ConnectUs: us(t.Phases.Connect),
			TLSUs:     us(t.Phases.TLS),
			WaitUs:    us(t.Phases.Wait),
			ReadUs:    us(t.Phases.Read),
			TotalUs:   us(t.Phases.Total),
		},
	}
	if v.Batch.SetNull(); wire.Batch != nil {
		v.Batch.Set(AttemptBatch{ID: wire.Batch.ID, Events: wire.Batch.Events})
	}
	if v.ResponseExcerpt.SetNull(); t.Body != nil {
		v.ResponseExcerpt.Set(strings.ToValidUTF8(string(t.Body), "\uFFFD"))
	}
	return v
}

// orNullID is an id of a kind; null for the zero id.
func orNullID(kind id.Kind, uuid id.UUID) nullable.Nullable[string] {
	if uuid.IsZero() {
		return nullable.NewNullNullable[string]()
	}
	return nullable.NewNullableWithValue(kind.Format(uuid))
}

// orNullStatus is the HTTP status of a result; null without a response.
func orNullStatus(r delivery.Result) nullable.Nullable[int] {
	if r.Status == 0 {
		return nullable.NewNullNullable[int]()
	}
	return nullable.NewNullableWithValue(r.Status)
}
