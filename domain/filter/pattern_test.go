package filter

import (
	"strings"
	"testing"

	"posthorn/domain/fault"
)

func TestPatternsOfSubscriptions(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"*", "order.*", "order.item.*", "order.completed", "a", strings.Repeat("a", 126) + ".*"} {
		if err := ValidPattern(p); err != nil {
			t.Errorf("%q: %v", p, err)
		}
	}
	for _, p := range []string{"", "**", "*.order", "order*", "order.*.x", ".*", "order.**", "order.*.*", "o*r", "a..*", "order. *", strings.Repeat("a", 127) + ".*"} {
		if f := fault.As(ValidPattern(p)); f == nil || f.Code != "event_type_pattern_invalid" || f.Fields[0].Name != "event_types" {
			t.Errorf("%q: got %v", p, f)
		}
	}
}

func TestPatternsTakeWhatTheySay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		patterns string
		typ      string
		want     bool
	}{
		{"*", "order.created", true},
		{"order.*", "order.created", true},
		{"order.*", "order.item.created", true},
		{"order.*", "order", false},
		{"order.*", "orders.created", false},
		{"order.*", "order.", false}, // no event has such a type
		{"order.item.*", "order.created", false},
		{"order.created", "order.created", true},
		{"order.created", "order.created.now", false},
		{"user.* order.created", "order.created", true},
		{"user.* invoice.paid", "order.created", false},
		{"", "order.created", false},
		{"*", "posthorn.endpoint.disabled", false}, // Posthorn's own notices are asked for by name
		{"* posthorn.endpoint.*", "posthorn.endpoint.disabled", true},
		{"posthorn.*", "posthorn.endpoint.disabled", true},
		{"posthorn.endpoint.disabled", "posthorn.endpoint.disabled", true},
		{"posthorn.quota.*", "posthorn.endpoint.disabled", false},
		{"posthorn.*", "order.created", false},
		{"*", "posthorn", true}, // the prefix ends with a dot
		{"*", "posthorns.created", true},
	} {
		if got := MatchType(strings.Fields(c.patterns), c.typ); got != c.want {
			t.Errorf("%q on %q: got %v", c.patterns, c.typ, got)
		}
	}
}
