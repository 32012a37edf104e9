package api

import (
	"fmt"
	"net/http"
	"time"

	"posthorn/db"
	"posthorn/db/endpoints"
	"posthorn/db/events"
	"posthorn/domain/endpoint"
	"posthorn/domain/filter"
	"posthorn/domain/id"
	"posthorn/domain/routing"
	"posthorn/domain/show"
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
