package api

import (
	"net/http"
	"strings"

	"github.com/oapi-codegen/nullable"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/sql"
	"posthorn/domain/condition"
	"posthorn/domain/delivery"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/signature"
	"posthorn/handlers"
)

// allFailed is the filter for deliveries that failed at least once and were not delivered.
const allFailed = "all_failed"

var deliveryFilters = handlers.List{
	Name:     "deliveries",
	Statuses: []string{"pending", "retrying", "held", "delivered", "failed", delivery.DeadLetter, "canceled", allFailed},
	Filters: []handlers.Filter{
		handlers.BySince, handlers.ByUntil, handlers.ByType, handlers.ByChannel, handlers.ByEndpoint,
		handlers.ByArchived,
		handlers.ByWait, handlers.ByJob,
	},
}

func (a *api) listDeliveries(c *handlers.Call) error {
	p, err := c.Page(deliveryFilters)
	if err != nil {
		return err
	}
	list := deliveries.ListOptions{
		EventType: p.Type, Channel: p.Channel, Since: p.Since, Until: p.Until, Archived: p.Archived, Wait: p.Wait,
	}
	if !p.Endpoint.IsZero() {
		list.Endpoint = &p.Endpoint
	}
	if s, ok := delivery.ParseStatus(p.Status); ok {
		list.Status = &s
	} else if p.Status == allFailed {
		s := deliveries.AllFailed
		list.Status = &s
	} else if p.Status == delivery.DeadLetter {
		s := deliveries.DeadLetters
		list.Status = &s
	}
	if !p.Job.IsZero() {
		list.Job = &p.Job
	}
	return a.answerDeliveries(c, p, list, nil)
}

// listEventDeliveries lists the deliveries of an event. It leaves out archived ones, as every list does.
func (a *api) listEventDeliveries(c *handlers.Call) error {
	eventID, err := c.ID(id.Event, "event_id")
	if err != nil {
		return err
	}
	p, err := c.Page(handlers.List{Name: "event-deliveries"})
	if err != nil {
		return err
	}
	return a.answerDeliveries(c, p, deliveries.ListOptions{Event: &eventID}, func(q *db.Tx) error {
		floor, err := q.VisibleSince(c.Ctx(), c.Actor.Tenant)
		if err != nil || eventID.Time().Before(floor) {
			return orNotFound(err)
		}
		exists, err := q.EventExists(c.Ctx(), sql.EventExistsParams{
			TenantID: c.Actor.Tenant, CreatedAt: eventID.Time(), ID: eventID,
		})
		if err == nil && !exists {
			err = fault.ErrNotFound
		}
		return err
	})
}

// orNotFound is err, or fault.ErrNotFound if there is nothing.
func orNotFound(err error) error {
	if err == nil {
		return fault.ErrNotFound
	}
	return err
}

func (a *api) answerDeliveries(c *handlers.Call, p handlers.Page, list deliveries.ListOptions,
	first func(*db.Tx) error,
) error {
	list.After, list.Ascending, list.Most = p.AfterID(), p.Ascending, p.Limit
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
	next := ""
	if page.Next != nil {
		next = p.Cursor(page.Next[:])
	}
	return c.Answer(http.StatusOK, DeliveryPage{Data: views(page.Rows, deliveryView), NextCursor: cursorOrNull(next)})
}

// attemptsShown bounds the attempts in a response. Only a delivery that was probed for long has as many.
const attemptsShown = 250

func (a *api) getDelivery(c *handlers.Call) error {
	deliveryID, err := c.ID(id.Delivery, "delivery_id")
	if err != nil {
		return err
	}
	var d deliveries.State
	var attempts []sql.Attempt
	var expunged bool
	err = c.Tx(func(q *db.Tx) error {
		if d, err = deliveries.Read(c.Ctx(), q, c.Actor.Tenant, deliveryID); err != nil {
			return err
		}
		if attempts, err = deliveries.Attempts(c.Ctx(), q, d.Delivery, attemptsShown); err != nil {
			return err
		}
		expunged, err = q.EventExpunged(c.Ctx(), sql.EventExpungedParams{
			TenantID:  c.Actor.Tenant,
			CreatedAt: d.EventID.Time(), ID: d.EventID,
		})
		return err
	})
	if err != nil {
		return err
	}
	v := deliveryView(d)
	return c.Answer(http.StatusOK, DeliveryWithAttempts{
		ID: v.ID, EventID: v.EventID, EventType: v.EventType, EndpointID: v.EndpointID, Status: v.Status,
		Reason: v.Reason, AttemptCount: v.AttemptCount, LastStatus: v.LastStatus, LastFailure: v.LastFailure,
		NextAttemptAt: v.NextAttemptAt, Wait: v.Wait,
		CreatedAt: v.CreatedAt, SettledAt: v.SettledAt, ArchivedAt: v.ArchivedAt, ReplayOf: v.ReplayOf,
		ReplayedBy: v.ReplayedBy, ReplayedAt: v.ReplayedAt, DeadLetter: v.DeadLetter, JobID: v.JobID,
		PausedBy: v.PausedBy, PausedSince: v.PausedSince, Attempts: views(attempts, attemptView),
		PayloadExpunged: expunged,
	})
}

func deliveryView(d deliveries.State) Delivery {
	v := Delivery{
		ID: id.Delivery.Format(d.ID), EventID: id.Event.Format(d.EventID), EventType: d.EventType,
		EndpointID: id.Endpoint.Format(d.EndpointID), Status: DeliveryStatus(d.Shown.String()),
		Reason: orNullText(d.Reason.String()), AttemptCount: int(d.Attempts), LastStatus: orNullStatus(d.LastStatus),
		LastFailure:   orNullText(d.LastFailure.String()),
		NextAttemptAt: orNullAt(d.NextAt), CreatedAt: Time(d.CreatedAt), SettledAt: orNullAt(d.SettledAt),
		ArchivedAt: orNullAt(d.ArchivedAt),
		ReplayOf:   nullable.NewNullNullable[string](), JobID: nullable.NewNullNullable[string](),
	}
	v.PausedBy, v.PausedSince = nullable.NewNullNullable[string](), nullable.NewNullNullable[Time]()
	if d.Paused != nil {
		v.PausedBy, v.PausedSince = nullable.NewNullableWithValue(string(d.Paused.By)), orNullAt(d.Paused.Since)
	}
	v.Wait.SetNull()
	if d.Wait != nil {
		v.Wait.Set(waitView(*d.Wait))
	}
	if d.JobID != nil {
		v.JobID = nullable.NewNullableWithValue(id.Job.Format(*d.JobID))
	}
	if d.ReplayOf != nil {
		v.ReplayOf = nullable.NewNullableWithValue(id.Delivery.Format(*d.ReplayOf))
	}
	v.DeadLetter, v.ReplayedBy, v.ReplayedAt = d.DeadLetter, nullable.NewNullNullable[string](),
		nullable.NewNullNullable[Time]()
	if d.ReplayedBy != nil {
		v.ReplayedBy, v.ReplayedAt = nullable.NewNullableWithValue(id.Delivery.Format(*d.ReplayedBy)),
			orNullTime(d.ReplayedBy.Time())
	}
	return v
}

// waitView says why a delivery waits.
func waitView(w condition.Wait) DeliveryWait {
	v := DeliveryWait{
		Reason: WaitReason(w.Reason), Detail: w.Detail(), Until: orNullTime(w.Until), Approximate: w.About,
		Behind: nullable.NewNullNullable[string](), PausedScope: nullable.NewNullNullable[string](),
	}
	if w.Reason == condition.OperatorPause {
		v.PausedScope.Set(string(w.Scope))
	}
	if !w.Behind.IsZero() {
		v.Behind.Set(id.Delivery.Format(w.Behind))
	}
	return v
}

// attemptView shows the response as text: bytes that are not UTF-8 become the replacement character.
func attemptView(t sql.Attempt) Attempt {
	v := Attempt{
		ID: id.Attempt.Format(t.ID), Number: int(t.Number), Late: t.Late, Status: orNullStatus(t.Status),
		Failure: orNullText(t.Failure.String()), Error: orNull(t.Error), StartedAt: Time(t.CreatedAt), URL: t.URL,
		Format:    string(signature.ParseWire(t.Format, "").Format),
		Signature: t.Signature, ResponseHeaders: orNull(t.ResponseHeaders),
		ResponseExcerpt: nullable.NewNullNullable[string](),
		Phases: Phases{
			DNSUs: int(t.DNSUs), ConnectUs: int(t.ConnectUs), TLSUs: int(t.TLSUs), WaitUs: int(t.WaitUs),
			ReadUs: int(t.ReadUs), TotalUs: int(t.TotalUs),
		},
	}
	if t.ResponseExcerpt != nil {
		v.ResponseExcerpt = nullable.NewNullableWithValue(strings.ToValidUTF8(string(t.ResponseExcerpt), "\uFFFD"))
	}
	return v
}

// orNullStatus is an HTTP status; null without a response.
func orNullStatus(status int16) nullable.Nullable[int] {
	if status == 0 {
		return nullable.NewNullNullable[int]()
	}
	return nullable.NewNullableWithValue(int(status))
}
