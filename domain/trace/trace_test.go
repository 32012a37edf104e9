package trace_test

import (
	"fmt"
	"strings"
	"testing"

	"posthorn/domain/id"
	"posthorn/domain/trace"
)

// The first is the example of the specification.
const example = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestAContextIsReadAsTheSpecificationSays(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		example:                                example,
		strings.TrimSuffix(example, "1") + "0": strings.TrimSuffix(example, "1") + "0",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03":      example, // other flags are unknown to us
		"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01":      example, // a later version
		"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what": example,
		"":        "",
		"garbage": "",
		"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01":      "",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more": "",
		"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.more": "",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01":      "",
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01":      "",
		"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01":      "",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g":      "",
		"00-0af7651916cd43dd8448eb211c8031-9c-b7ad6b7169203331-01":     "",
		"00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01":      "",
		"00-0af7651916cd43dd8448eb211c80-19c-b7ad6b7169203331-01":      "",
	} {
		c, ok := trace.Parse(text)
		if got := c.String(); ok != (want != "") || ok && got != want {
			t.Errorf("%q is read as %q, %v; want %q", text, got, ok, want)
		}
	}
}

func TestARequestHasOneContextOrNone(t *testing.T) {
	t.Parallel()
	if c := trace.FromHeader([]string{" " + example}); !c.Valid() || c.String() != example {
		t.Errorf("one header is %v", c)
	}
	for _, values := range [][]string{nil, {example, example}, {"x"}} {
		if c := trace.FromHeader(values); c.Valid() {
			t.Errorf("%q is %v", values, c)
		}
	}
}

func TestEachAttemptHasASpanOfItsOwnInTheEventsTrace(t *testing.T) {
	t.Parallel()
	one, other := id.UUID{1}, id.UUID{2}
	seen := map[string]bool{}
	for _, delivery := range []id.UUID{one, other} {
		for number := range 3 {
			c, ok := trace.Attempt(example, delivery, number+1)
			if !ok || !c.Sampled || trace.ID(new(c.String())) != "0af7651916cd43dd8448eb211c80319c" {
				t.Fatalf("an attempt is at %v", c)
			}
			seen[c.String()] = true
		}
	}
	if len(seen) != 6 {
		t.Errorf("six attempts have %d spans", len(seen))
	}
	if got, want := fmt.Sprintf("%x", trace.AttemptSpan(one, 2)), "94d3a4c603d72237"; got != want {
		t.Errorf("the span of an attempt is %s, was %s: links between versions break", got, want)
	}
}

func TestTheIDOfATraceIsToldFromOtherTexts(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"0af7651916cd43dd8448eb211c80319c": true,
		"0AF7651916CD43DD8448EB211C80319C": false,
		strings.Repeat("0", 32):            false,
		"0af7":                             false,
		"ord_10338":                        false,
	} {
		if trace.ValidID(text) != want {
			t.Errorf("%q is an id: %v", text, !want)
		}
	}
	if trace.ID(nil) != "" {
		t.Error("no context has an id")
	}
}
