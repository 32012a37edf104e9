package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"posthorn/db"
	"posthorn/db/deliveries"
	"posthorn/db/endpoints"
	"posthorn/db/events"
	"posthorn/db/queue"
	"posthorn/domain/access"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/filter"
	"posthorn/domain/id"
	"posthorn/domain/routing"
	"posthorn/domain/show"
	"posthorn/domain/transform"
	"posthorn/handlers"
)

// dryRunTime bounds the matching in a dry run. One event takes a millisecond or two at most (domain/filter).
const dryRunTime = 2 * time.Second

// dryRunFilter shows which of the tenant's past events a subscription matches, the saved one or a tried one. It
// changes nothing.
func (a *api) dryRunFilter(c *handlers.Call) error {
	endpointID := c.PathID("endpoint_id")
	var in DryRunInput
	if err := c.DecodeOptional(&in); err != nil {
		return err
	}
	limit, err := in.limit()
	if err != nil {
		return err
	}
	var rule routing.Rule
	var past []show.Event
	var whole bool
	err = c.Tx(func(q *db.Tx) error {
		settings, err := endpoints.ReadBareSettings(c.Ctx(), q, c.Actor.Tenant, endpointID)
		if err != nil {
			return err
		}
		if rule, err = in.rule(settings); err != nil {
			return err
		}
		patterns := rule.EventTypes
		if in.AllTypes != nil && *in.AllTypes {
			patterns = []string{"*"}
		}
		past, whole, err = events.Sample(c.Ctx(), q, c.Actor.Tenant, patterns, limit, a.Now())
		return err
	})
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, a.dryRun(rule, past, whole))
}

// rule is the tried subscription: the given fields over the saved ones.
func (in DryRunInput) rule(s endpoint.Settings) (routing.Rule, error) {
	set(&s.EventTypes, in.EventTypes)
	set(&s.Channels, in.Channels)
	if in.Filter.IsSpecified() {
		text, _ := in.Filter.Get() // null: none
		s.Filter = string(text)
	}
	s, err := s.CheckSubscription()
	return routing.Rule{
		EventTypes: s.EventTypes,
		Channels:   s.Channels,
		Filter:     s.Filter,
		Status:     endpoint.Active,
		Version:    s.PayloadVersion,
	}, err
}

func (in DryRunInput) limit() (int, error) {
	if in.Limit == nil {
		return handlers.DefaultLimit, nil
	}
	if *in.Limit < 1 || *in.Limit > handlers.MaxLimit {
		var wrong wrongFields
		wrong.add("limit", "limit_range", fmt.Sprintf("limit must be a number from 1 to %d.", handlers.MaxLimit))
		return 0, wrong.err()
	}
	return *in.Limit, nil
}

func (a *api) dryRun(rule routing.Rule, events []show.Event, whole bool) DryRun {
	route := routing.Compile(rule)
	end := a.Now().Add(dryRunTime)
	out := DryRun{Data: make([]DryRunVerdict, 0, len(events)), Complete: whole}
	for _, e := range events {
		if a.Now().After(end) {
			out.Complete = false
			break
		}
		v := route.Evaluate(routing.Event{Type: e.Type, Channels: e.Channels, Version: e.Version, Data: e.Data})
		one := DryRunVerdict{
			EventID:   id.Event.Format(e.ID),
			Type:      e.Type,
			CreatedAt: Time(e.ID.Time()),
			Matched:   v.Matched,
			Unsure:    v.Unsure,
			Detail:    v.Detail,
		}
		one.Clause.SetNull()
		if v.Clause != filter.ClauseNone {
			one.Clause.Set(DryRunVerdictClause(v.Clause))
		}
		if v.Matched {
			out.Matched++
		}
		out.Data = append(out.Data, one)
	}
	return out
}

// triedByDefault and mostTried are how many past events a transformation is tried on.
const (
	triedByDefault = 10
	mostTried      = 50
	tryTime        = 2 * time.Second
)

// tryTransformation shows what an endpoint would receive for past events, by its transformation or a tried one. It
// changes nothing.
func (a *api) tryTransformation(c *handlers.Call) error {
	now := a.Now()
	end := now.Add(tryTime)
	trial := deliveries.Trial{
		Endpoint: c.PathID("endpoint_id"),
		Limit:    triedByDefault,
		Links:    queue.Links{BaseURL: a.BaseURL},
		Now:      now,
		Enough:   func() bool { return a.Now().After(end) },
	}
	if !c.Actor.Scopes.Has(access.EventsRead) {
		return fault.New(fault.Forbidden, "scope_missing", "The result shows data of events, so it needs the scope "+string(access.EventsRead)+", which this key lacks.")
	}
	var in TransformationTryInput
	if err := c.DecodeOptional(&in); err != nil {
		return err
	}
	var wrong wrongFields
	if in.Limit != nil {
		if trial.Limit = *in.Limit; trial.Limit < 1 || trial.Limit > mostTried {
			wrong.add("limit", "out_of_range", "limit must be a number from 1 to 50.")
		}
	}
	if in.EventID != nil {
		var err error
		if trial.Event, err = id.Event.Parse(*in.EventID); err != nil {
			wrong.add("event_id", "event_id_malformed", "An event id has the form evt_ and 26 characters.")
		}
	}
	if err := wrong.err(); err != nil {
		return err
	}
	trial.Settings = func(s endpoint.Settings) (endpoint.Settings, error) {
		if !in.Transformation.IsSpecified() {
			return s, nil
		}
		raw := json.RawMessage("null")
		if given, err := in.Transformation.Get(); err == nil {
			if raw, err = json.Marshal(given); err != nil {
				return s, err
			}
		}
		if err := s.Patch(map[string]json.RawMessage{"transformation": raw}); err != nil {
			return s, err
		}
		return s, s.CheckTransformation()
	}
	var tried []show.Tried
	if err := c.Tx(func(q *db.Tx) (err error) {
		tried, err = trial.Try(c.Ctx(), q, c.Actor.Tenant)
		return err
	}); err != nil {
		return err
	}
	return c.Answer(http.StatusOK, encodeTried(tried))
}

func encodeTried(tried []show.Tried) TransformationTry {
	v := TransformationTry{Results: []TransformationResult{}}
	for _, t := range tried {
		r := TransformationResult{
			EventID:     id.Event.Format(t.Event.ID),
			EventType:   t.Event.Type,
			Method:      cmp.Or(t.Output.Method, http.MethodPost),
			ContentType: t.Output.ContentType,
			Headers:     []HandoutHeader{},
		}
		for _, h := range t.Output.Headers {
			r.Headers = append(r.Headers, HandoutHeader{Name: h.Name, Value: h.Value})
		}
		if r.Problem.SetNull(); t.Problem == nil {
			v.OK++
			r.Body.Set(string(t.Output.Body))
		} else {
			v.Failed++
			r.Body.SetNull()
			r.Problem.Set(encodeProblem(*t.Problem))
		}
		v.Results = append(v.Results, r)
	}
	return v
}

func encodeProblem(p transform.Problem) (v TransformationProblem) {
	v.Detail = p.Text
	v.Header, v.Line, v.Column = orNullText(p.Header), orNullZero(p.Line), orNullZero(p.Column)
	return v
}
