package failures

import (
	"strings"
	"testing"

	"posthorn/domain/delivery"
)

func TestTheTextIsWhatTheResponseSays(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		``:                            "",
		`currency XTS is unknown`:     "currency XTS is unknown",
		"\n first line \r\nsecond":    "first line",
		`{"message":"no such order"}`: "no such order",
		`{"error":{"code":"E7","message":"no such order"}}`:                            "no such order",
		`{"errors":[{"detail":"bad currency"}]}`:                                       "bad currency",
		`{"ok":false}`:                                                                 `{"ok":false}`,
		`{"request":{"a":1},"message":"cut \"off\"","more":"`:                          `cut \"off\"`,
		`<html><head><title>502 Bad &amp; Gateway</title></head><body>x</body></html>`: "502 Bad & Gateway",
		`<html><body><style>b{}</style><h1>Down</h1> for maintenance</body></html>`:    "Down for maintenance",
		"bell\x07 \xff\u2028end":                                                       "bell end",
		strings.Repeat("long ", 100):                                                   strings.TrimSpace(strings.Repeat("long ", 24)) + Gap,
	} {
		if got := Text([]byte(body)); got != want {
			t.Errorf("%q says %q, want %q", body, got, want)
		}
	}
}

func TestResponsesThatDifferInIdsAndNumbersAreOneGroup(t *testing.T) {
	t.Parallel()
	r := delivery.Result{Status: 422}
	same := [][]string{
		{"order 17 is unknown", "order 9,300.25 is unknown", "Order 18 is unknown"},
		{"no user usr_01jd0000000000", "no user usr_01jd7777777777"},
		{"key 123e4567-e89b-12d3-a456-426614174000 taken", "key 00000000-0000-0000-0000-000000000001 taken"},
		{"a@example.com bounced", "b.c@example.org bounced"},
		{"trace 4bf92f3577b34da6", "trace 00f067aa0ba902b7"},
	}
	seen := map[string]string{}
	for _, group := range same {
		key := Key(r, group[0])
		for _, text := range group {
			if got := Key(r, text); got != key {
				t.Errorf("%q is not in the group of %q", text, group[0])
			}
		}
		if other, known := seen[key]; known {
			t.Errorf("%q and %q are one group", group[0], other)
		}
		seen[key] = group[0]
	}
	if Key(r, "x") == Key(delivery.Result{Status: 400}, "x") || Key(r, "currency XTS") == Key(r, "currency EUR") {
		t.Error("different responses are one group")
	}
}
