package filter

import (
	"strings"
	"testing"
)

func TestDecideNamesTheClauseThatRefusedFirst(t *testing.T) {
	t.Parallel()
	paid := mustCompile(t, []byte(`{"status":"paid"}`))
	for name, c := range map[string]struct {
		s        Subscription
		channels []string
		clause   Clause
		says     string
	}{
		"everything":              {Subscription{EventTypes: []string{"*"}}, nil, ClauseNone, ""},
		"a prefix":                {Subscription{EventTypes: []string{"user.*", "order.*"}, Filter: paid}, nil, ClauseNone, ""},
		"no types":                {Subscription{}, nil, ClauseType, "does not subscribe"},
		"another type":            {Subscription{EventTypes: []string{"invoice.*"}, Channels: []string{"us"}}, nil, ClauseType, "does not subscribe"},
		"no channel on the event": {Subscription{EventTypes: []string{"*"}, Channels: []string{"eu"}}, nil, ClauseChannel, "no channel"},
		"other channels": {
			Subscription{EventTypes: []string{"*"}, Channels: []string{"eu"}, Filter: paid},
			[]string{"us"},
			ClauseChannel, "none of the endpoint's",
		},
		"a shared channel":         {Subscription{EventTypes: []string{"*"}, Channels: []string{"eu", "us"}}, []string{"asia", "us"}, ClauseNone, ""},
		"channels of the event":    {Subscription{EventTypes: []string{"*"}}, []string{"us"}, ClauseNone, ""},
		"a filter that is false":   {Subscription{EventTypes: []string{"*"}, Filter: mustCompile(t, []byte(`{"status":"open"}`))}, nil, ClauseFilter, "doesn't match"},
		"a filter that can't tell": {Subscription{EventTypes: []string{"*"}, Filter: mustCompile(t, []byte(`"data.amount > 5"`))}, nil, ClauseFilter, "the field amount is missing"},
	} {
		ok, clause, sentence := c.s.Decide(NewInput("order.created", []byte(order), c.channels))
		if ok != (c.clause == ClauseNone) || clause != c.clause || !strings.Contains(sentence, c.says) ||
			(sentence == "") != ok {
			t.Errorf("%s: got %v, %q, %q", name, ok, clause, sentence)
		}
	}
}

// Not parallel: AllocsPerRun counts the whole process.
func TestDecidingWithoutAFilterAllocatesNothing(t *testing.T) {
	in := orderInput()
	for name, s := range map[string]Subscription{
		"everything":     {EventTypes: []string{"*"}},
		"prefix":         {EventTypes: []string{"user.*", "order.*"}, Channels: []string{"retail"}},
		"another type":   {EventTypes: []string{"user.*"}},
		"other channels": {EventTypes: []string{"*"}, Channels: []string{"us"}},
	} {
		if n := testing.AllocsPerRun(100, func() { s.Decide(in) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	in := orderInput()
	for name, s := range map[string]Subscription{
		"everything": {EventTypes: []string{"*"}},
		"prefix":     {EventTypes: []string{"user.*", "order.*"}},
		"plain":      {EventTypes: []string{"*"}, Filter: mustCompile(b, []byte(`{"customer.country":"DE"}`))},
		"expression": {EventTypes: []string{"*"}, Filter: mustCompile(b, quote(b, `data.customer.country == "DE" && data.id > 5`))},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Decide(in)
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	b.ReportAllocs()
	b.SetBytes(int64(len(order)))
	for b.Loop() {
		if _, err := decode([]byte(order), new(bool)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	raw := quote(b, `data.customer.country == "DE" && data.id > 5`)
	for b.Loop() {
		mustCompile(b, raw)
	}
}
