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
	if c := trace.FromHeaders([]string{" " + example}, nil); !c.Valid() || c.String() != example || c.Stored() != example {
		t.Errorf("one header is %v", c)
	}
	for _, values := range [][]string{nil, {example, example}, {"x"}} {
		if c := trace.FromHeaders(values, []string{"a=b"}); c.Valid() || c.State != "" {
			t.Errorf("%q is %v", values, c)
		}
	}
}

func TestTheStateOfATraceIsKeptAsTheSpecificationSays(t *testing.T) {
	t.Parallel()
	member := func(key string, length int) string { return key + "=" + strings.Repeat("v", length-len(key)-1) }
	many := make([]string, 33)
	for i := range many {
		many[i] = fmt.Sprintf("k%d=v", i)
	}
	long := []string{member("a", 100), member("b", 200), member("c", 100), member("d", 100), member("e", 100)}
	tenth := make([]string, 10)
	for i := range tenth {
		tenth[i] = member(fmt.Sprintf("k%d", i), 100)
	}
	for _, c := range []struct {
		name  string
		given []string
		want  string
	}{
		{"the specification's", []string{"rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"}, "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"},
		{"several headers, empty members", []string{"a=1, ,b@c=2", "d/e=3 4"}, "a=1,b@c=2,d/e=3 4"},
		{"none", nil, ""},
		{"a key in capitals", []string{"a=1,B=2"}, ""},
		{"no value", []string{"a=1,b"}, ""},
		{"an equals sign in a value", []string{"a=1=2"}, ""},
		{"a line break", []string{"a=1\r\nx"}, ""},
		{"32 members", []string{strings.Join(many[:32], ",")}, strings.Join(many[:32], ",")},
		{"33 members", []string{strings.Join(many, ",")}, ""},
		{"too long, a long member", []string{strings.Join(long, ",")}, strings.Join([]string{long[0], long[2], long[3], long[4]}, ",")},
		{"too long", []string{strings.Join(tenth, ",")}, strings.Join(tenth[:5], ",")},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := trace.FromHeaders([]string{example}, c.given)
			if got.State != c.want {
				t.Errorf("got %q, want %q", got.State, c.want)
			}
			if again, ok := trace.ParseStored(got.Stored()); !ok || again != got {
				t.Errorf("stored and read again: %v", again)
			}
			if id := trace.ID(new(got.Stored())); id != example[3:35] {
				t.Errorf("the id of what is stored is %q", id)
			}
		})
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
