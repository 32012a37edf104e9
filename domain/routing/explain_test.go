package routing

import (
	"strings"
	"testing"

	"posthorn/domain/endpoint"
	"posthorn/domain/filter"
)

var all = Rule{EventTypes: []string{"*"}, Status: endpoint.Active}

func with(change func(*Rule)) Rule {
	r := all
	change(&r)
	return r
}

func TestEveryVerdictNamesTheClauseThatDecided(t *testing.T) {
	t.Parallel()
	paid := Event{Type: "order.paid", Version: "2", Channels: []string{"eu"}, Data: []byte(`{"amount":5,"order":{"status":"open"}}`)}
	other := with(func(r *Rule) { r.EventTypes = []string{"user.*"} })
	for name, c := range map[string]struct {
		candidate Candidate
		matched   bool
		held      bool
		clause    filter.Clause
		says      string
	}{
		"takes everything": {Candidate{Rule: all, Sent: true}, true, false, filter.ClauseNone, "was active"},
		"another type":     {Candidate{Rule: other}, false, false, filter.ClauseType, "does not subscribe"},
		"another channel": {
			Candidate{Rule: with(func(r *Rule) { r.Channels = []string{"us"} })},
			false, false, filter.ClauseChannel,
			"none of the endpoint's channels",
		},
		"a filter that is false": {Candidate{Rule: with(func(r *Rule) { r.Filter = `"data.amount > 9"` })}, false, false, filter.ClauseFilter, "returns false"},
		"a missing field":        {Candidate{Rule: with(func(r *Rule) { r.Filter = `"data.price > 9"` })}, false, false, filter.ClauseFilter, "the field price is missing"},
		"another value":          {Candidate{Rule: with(func(r *Rule) { r.Filter = `{"order.status":"paid"}` })}, false, false, filter.ClauseFilter, `"order.status" in this event's data doesn't have the value`},
		"a path that is not":     {Candidate{Rule: with(func(r *Rule) { r.Filter = `{"order.state":"paid"}` })}, false, false, filter.ClauseFilter, `"order.state", which this event's data doesn't have`},
		"an unreadable filter":   {Candidate{Rule: with(func(r *Rule) { r.Filter = `"no("` })}, false, false, filter.ClauseFilter, "can no longer be read"},
		"paused": {
			Candidate{Rule: with(func(r *Rule) { r.Status = endpoint.Paused }), Sent: true},
			true, true,
			filter.ClauseState, "paused",
		},
		"disabled": {
			Candidate{Rule: with(func(r *Rule) { r.Status = endpoint.Disabled }), Sent: true},
			true, true,
			filter.ClauseState, "disabled",
		},
		"unverified": {
			Candidate{Rule: with(func(r *Rule) { r.Status = endpoint.Unverified }), Sent: true},
			true, true,
			filter.ClauseState, "not verified",
		},
		"paused, not subscribed": {
			Candidate{Rule: with(func(r *Rule) { r.Status, r.EventTypes = endpoint.Paused, nil })},
			false, false,
			filter.ClauseType, "does not subscribe",
		},
		"pinned to another": {Candidate{Rule: with(func(r *Rule) { r.Version = "1" })}, false, false, ClauseVersion, "another payload version"},
		"pinned to it": {
			Candidate{Rule: with(func(r *Rule) { r.Version = "2" }), Sent: true},
			true, false, filter.ClauseNone,
			"was active",
		},
		"pinned, not subscribed": {
			Candidate{Rule: with(func(r *Rule) { r.Version, r.EventTypes = "1", nil })},
			false, false, filter.ClauseType,
			"does not subscribe",
		},
		"created later":           {Candidate{Later: true}, false, false, ClauseLater, "created after"},
		"deleted before":          {Candidate{Rule: all, Deleted: true}, false, false, ClauseDeleted, "deleted before"},
		"later, then sent missed": {Candidate{Later: true, Sent: true}, false, false, ClauseLater, "on request"},
		"not matched, but sent":   {Candidate{Rule: other, Sent: true}, false, false, filter.ClauseType, "on request"},
	} {
		x := Explain(paid, []Candidate{c.candidate})
		v := x.Verdicts[0]
		if v.Matched != c.matched || v.Held != c.held || v.Clause != c.clause || !strings.Contains(v.Detail, c.says) ||
			v.Unsure || x.Direct {
			t.Errorf("%s: %+v, direct %v", name, v, x.Direct)
		}
		if strings.Contains(v.Detail, "open") {
			t.Errorf("%s shows what is in the event: %s", name, v.Detail)
		}
	}
}

func TestExpungedDataIsToldAsSuch(t *testing.T) {
	t.Parallel()
	gone := Event{Type: "order.paid"}
	filtered := with(func(r *Rule) { r.Filter = `"data.amount > 9"` })
	byType := with(func(r *Rule) { r.Filter = `"type == 'order.paid'"` })
	x := Explain(gone, []Candidate{
		{Rule: filtered},
		{Rule: filtered, Sent: true},
		{Rule: byType, Sent: true},
		{Rule: with(func(r *Rule) { r.EventTypes, r.Filter = []string{"user.*"}, filtered.Filter })},
	})
	if v := x.Verdicts[0]; v.Matched || !v.Unsure || v.Clause != filter.ClauseFilter || !strings.Contains(v.Detail, "is unknown") {
		t.Errorf("no delivery: %+v", v)
	}
	if v := x.Verdicts[1]; !v.Matched || v.Unsure || !strings.Contains(v.Detail, "expunged") {
		t.Errorf("a delivery tells that the filter took it: %+v", v)
	}
	if v := x.Verdicts[2]; !v.Matched || v.Unsure {
		t.Errorf("a filter that does not read the data can still be judged: %+v", v)
	}
	if v := x.Verdicts[3]; v.Matched || v.Unsure || v.Clause != filter.ClauseType {
		t.Errorf("a clause before the filter can still be judged: %+v", v)
	}
	if x.Direct || x.Matched != 2 {
		t.Errorf("%d matched, direct %v", x.Matched, x.Direct)
	}
}

func TestAnEventForOneEndpointAloneIsToldApart(t *testing.T) {
	t.Parallel()
	test := Event{Type: "endpoint.test", Data: []byte(`{}`)}
	x := Explain(test, []Candidate{
		{Rule: with(func(r *Rule) { r.EventTypes = []string{"order.*"} }), Sent: true},
		{Rule: all},
		{Later: true},
	})
	want := []struct {
		matched bool
		clause  filter.Clause
	}{{true, ClauseDirect}, {false, ClauseDirect}, {false, ClauseLater}}
	for i, w := range want {
		if v := x.Verdicts[i]; v.Matched != w.matched || v.Clause != w.clause {
			t.Errorf("%d: %+v", i, v)
		}
	}
	if !x.Direct || x.Matched != 1 || !strings.Contains(x.Summary, "one endpoint only") {
		t.Errorf("%+v", x)
	}
}

func TestATrialSaysWhatARouteWouldTake(t *testing.T) {
	t.Parallel()
	route := Compile(with(func(r *Rule) { r.Filter = `"data.amount > 3"` }))
	for data, want := range map[string]Verdict{
		`{"amount":5}`: {Matched: true, Detail: "The endpoint matches this event."},
		`{"amount":1}`: {Clause: filter.ClauseFilter, Detail: "The endpoint's filter returns false for this event."},
		"":             {Clause: filter.ClauseFilter, Unsure: true, Detail: "The event's data was expunged, so the result of the endpoint's filter is unknown."},
	} {
		e := Event{Type: "order.paid"}
		if data != "" {
			e.Data = []byte(data)
		}
		if got := route.Evaluate(e); got != want {
			t.Errorf("%s: %+v", data, got)
		}
	}
}

func TestTheSummarySaysWhyNobodyGotIt(t *testing.T) {
	t.Parallel()
	e := Event{Type: "order.paid", Data: []byte(`{}`)}
	none := with(func(r *Rule) { r.EventTypes = nil })
	false1 := with(func(r *Rule) { r.Filter = `"1 == 2"` })
	for want, candidates := range map[string][]Candidate{
		"Sent to no endpoint: the tenant had none when the event was accepted.":  nil,
		"Sent to no endpoint: the tenant had none when the event was accepted. ": {{Later: true}, {Rule: all, Deleted: true}},
		"Sent to 0 of 1 endpoint. Excluded: 1 by event type.":                    {{Rule: none}},
		"Sent to 0 of 3 endpoints. Excluded: 2 by event type, 1 by filter.":      {{Rule: none}, {Rule: false1}, {Rule: none}, {Later: true}},
		"Sent to 1 of 2 endpoints.":                                              {{Rule: all, Sent: true}, {Rule: none}},
		"Matched 1 of 1 endpoint; held for 1 of them, inactive at the time.":     {{Rule: with(func(r *Rule) { r.Status = endpoint.Paused }), Sent: true}},
		"Sent to 0 of 1 endpoint. Excluded: 1 by channel.":                       {{Rule: with(func(r *Rule) { r.Channels = []string{"a"} })}},
	} {
		if got := Explain(e, candidates).Summary; got != strings.TrimSpace(want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
