package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/oapi-codegen/nullable"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/sources"
	"posthorn/domain/access"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/domain/source"
	"posthorn/handlers"
)

// maxTestBody bounds a message that a mapping is tried on, in bytes.
const maxTestBody = 4 << 20

func (a *api) sources(c *handlers.Call) sources.Store {
	return sources.Store{Tenant: c.Actor.Tenant, Keys: a.Keys, By: c.Author()}
}

func (a *api) createSource(c *handlers.Call) error {
	var in SourceInput
	if err := c.Decode(&in); err != nil {
		return err
	}
	s, err := a.over(source.Settings{Kind: endpoint.Kind(in.Kind)}, in)
	if err != nil {
		return err
	}
	return respond(c, http.StatusCreated, func(q *db.Tx) (show.Source, error) {
		return a.sources(c).Create(c.Ctx(), q, s)
	}, encodeSource)
}

// over lays the given fields of a body over settings and validates the result.
func (a *api) over(s source.Settings, body any) (source.Settings, error) {
	given, err := fieldsOf(body)
	if err != nil {
		return s, err
	}
	if err := s.Patch(given); err != nil {
		return s, err
	}
	return s.Check(a.Egress)
}

func (a *api) listSources(c *handlers.Call) error {
	return list(c, handlers.List{Name: "sources"}, func(q *db.Tx, p handlers.Page) (show.Page[show.Source], error) {
		return a.sources(c).List(c.Ctx(), q, p.Range)
	}, encodeSource)
}

func (a *api) getSource(c *handlers.Call) error {
	sourceID := c.PathID("source_id")
	return respond(c, http.StatusOK, func(q *db.Tx) (show.Source, error) { return a.sources(c).Read(c.Ctx(), q, sourceID) }, encodeSource)
}

func (a *api) updateSource(c *handlers.Call) error {
	sourceID := c.PathID("source_id")
	var in SourcePatch
	if err := c.Decode(&in); err != nil {
		return err
	}
	return respond(c, http.StatusOK, func(q *db.Tx) (show.Source, error) {
		return a.sources(c).Change(c.Ctx(), q, sourceID, func(s source.Settings) (source.Settings, error) { return a.over(s, in) })
	}, encodeSource)
}

func (a *api) deleteSource(c *handlers.Call) error {
	sourceID := c.PathID("source_id")
	if err := c.NoBody(); err != nil {
		return err
	}
	if err := c.Tx(func(q *db.Tx) error { return a.sources(c).Delete(c.Ctx(), q, sourceID) }); err != nil {
		return err
	}
	return c.AnswerNothing()
}

func (a *api) pauseSource(c *handlers.Call) error { return a.setSource(c, true) }

func (a *api) resumeSource(c *handlers.Call) error { return a.setSource(c, false) }

func (a *api) setSource(c *handlers.Call, paused bool) error {
	sourceID := c.PathID("source_id")
	if err := c.NoBody(); err != nil {
		return err
	}
	return respond(c, http.StatusOK, func(q *db.Tx) (show.Source, error) {
		return a.sources(c).Pause(c.Ctx(), q, sourceID, paused)
	}, encodeSource)
}

// testSource shows what a mapping makes of a message. It changes nothing.
func (a *api) testSource(c *handlers.Call) error {
	sourceID := c.PathID("source_id")
	if !c.Actor.Scopes.Has(access.EventsRead) {
		return fault.New(fault.Forbidden, "scope_missing", "The result shows a message, so it needs the scope "+string(access.EventsRead)+", which this key lacks.")
	}
	var in SourceTestInput
	if err := c.DecodeOptional(&in); err != nil {
		return err
	}
	var m *source.Message
	if in.Message != nil {
		if in.RejectedID != nil {
			return fault.InvalidField("rejected_id", "source_sample_twice", "Send either message or rejected_id.")
		}
		m = &source.Message{}
		if err := recode(in.Message, m); err != nil {
			return fault.InvalidField("message.base64", "field_type", "message.base64 must be Base64.")
		}
	}
	var s show.Source
	err := c.Tx(func(q *db.Tx) (err error) {
		if s, err = a.sources(c).Read(c.Ctx(), q, sourceID); err != nil || in.RejectedID == nil {
			return err
		}
		rejected, err := id.Event.Parse(*in.RejectedID)
		if err != nil {
			rejected = id.None
		}
		kept, err := a.sources(c).RejectedMessage(c.Ctx(), q, sourceID, rejected)
		m = &kept
		return err
	})
	if err != nil {
		return err
	}
	set(&s.Settings.Mapping, in.Mapping)
	try, err := handlers.TrySource(c.Ctx(), a.Tester, s.Settings, m, a.Now())
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, encodeTry(try))
}

func encodeTry(try show.SourceTry) (v SourceTest) {
	v.Message.SetNull()
	v.Event.SetNull()
	v.Problem.SetNull()
	if try.Message != nil {
		var m SourceMessage
		if err := recode(try.Message, &m); err != nil {
			panic(err) // the contract has the same names
		}
		v.Message.Set(m)
	}
	if try.Event != nil {
		v.Event.Set(json.RawMessage(try.Body))
	}
	if f := fault.As(try.Problem); f != nil {
		v.Problem.Set(SourceProblem{Code: f.Code, Detail: f.Detail})
	}
	return v
}

func encodeSource(s show.Source) (v Source) {
	connection := map[string]any{"kafka": nil, "rabbitmq": nil, "sqs": nil}
	connection[string(s.Settings.Kind)] = s.Settings.Shown()
	if err := recode(connection, &v); err != nil {
		panic(err) // the contract has the same names
	}
	v.ID, v.Name, v.Kind, v.URL = id.Source.Format(s.ID), s.Settings.Name, SourceKind(s.Settings.Kind), s.Settings.URL
	v.Start, v.Mapping = orNullText(s.Settings.Start), s.Settings.Mapping
	v.Status, v.Reason, v.FailingSince = SourceStatus(s.State.Status()), orNullText(s.State.Reason), orNullTime(s.State.FailingSince)
	v.Waiting = nullable.NewNullNullable[int]()
	if s.State.Waiting != nil {
		v.Waiting.Set(int(*s.State.Waiting))
	}
	v.BehindSince, v.LastReadAt, v.Missed = orNullTime(s.State.BehindSince), orNullTime(s.State.LastReadAt), int(s.State.Missed)
	v.DelaySeconds = int(s.State.Delay().Seconds())
	v.CreatedAt, v.UpdatedAt = Time(s.CreatedAt), Time(s.UpdatedAt)
	return v
}

// listRejected lists events that were emitted in SQL, and messages of sources, that were rejected.
func (a *api) listRejected(c *handlers.Call) error {
	l := handlers.List{Name: "outbox-rejected", Filters: []handlers.Filter{handlers.BySource}}
	return list(c, l, func(q *db.Tx, p handlers.Page) (show.Page[show.Rejected], error) {
		return deliveries.ListRejected(c.Ctx(), q, deliveries.RejectedFilter{Tenant: c.Actor.Tenant, Source: p.Source}, p.Range)
	}, rejectedView)
}

func rejectedView(r show.Rejected) RejectedEvent {
	v := RejectedEvent{
		ID:             id.Event.Format(r.ID),
		Type:           r.Type,
		Size:           r.Size,
		Code:           r.Code,
		Detail:         r.Detail,
		RejectedAt:     Time(r.RejectedAt),
		CreatedAt:      Time(r.ID.Time()),
		Key:            orNullText(r.Key),
		IdempotencyKey: orNullText(r.IdempotencyKey),
	}
	v.SourceID.SetNull()
	if !r.SourceID.IsZero() {
		v.SourceID.Set(id.Source.Format(r.SourceID))
	}
	return v
}

// retryRejected returns a rejected event to the relay, after its cause was fixed.
func (a *api) retryRejected(c *handlers.Call) error {
	eventID, err := a.settleRejected(c, deliveries.RetryRejected)
	if err != nil {
		return err
	}
	return c.Answer(http.StatusAccepted, RejectedRetried{ID: id.Event.Format(eventID)})
}

func (a *api) discardRejected(c *handlers.Call) error {
	if _, err := a.settleRejected(c, deliveries.DiscardRejected); err != nil {
		return err
	}
	return c.AnswerNothing()
}

func (a *api) settleRejected(
	c *handlers.Call,
	settle func(ctx context.Context, q *db.Tx, tenant, uuid id.UUID, by db.Author) error,
) (id.UUID, error) {
	eventID := c.PathID("rejected_id")
	if err := c.NoBody(); err != nil {
		return eventID, err
	}
	return eventID, c.Tx(func(q *db.Tx) error { return settle(c.Ctx(), q, c.Actor.Tenant, eventID, c.Author()) })
}
