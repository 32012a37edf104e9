package handlers

import (
	"net/url"
	"strings"
	"testing"
)

// A filter that can't be stored finds nothing. It never becomes empty, which would find everything.
func TestAQueryHoldsNothingThatTheDatabaseDoesNotTake(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"":             "",
		"q=abc&x=1":    "q=abc&x=1",
		"q=a%20b%2500": "q=a%20b%2500",
		"q=%00":        "q=%EF%BF%BD",
		"q=a%00b&x=1":  "q=a%EF%BF%BDb&x=1",
		"%00=1":        "%EF%BF%BD=1",
		"q=%ED%A0%BD":  "q=%EF%BF%BD",
		"q=\xff":       "q=%EF%BF%BD",
		"q=%C3%A9":     "q=%C3%A9",
		"q=%zz&x=%FF":  "q=%zz&x=%EF%BF%BD",
		"q":            "q",
		"%FF":          "%EF%BF%BD",
		"a=b%3D%00":    "a=b%3D%EF%BF%BD",
	} {
		got := storableQuery(raw)
		if got != want {
			t.Errorf("%q: %q, want %q", raw, got, want)
		}
		values, _ := url.ParseQuery(got)
		for name, all := range values {
			if text := name + strings.Join(all, ""); storable(text) != text {
				t.Errorf("%q still has %q", raw, text)
			}
		}
	}
}
