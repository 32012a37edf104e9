package filter

import (
	"fmt"
	"testing"
)

// Numbers are equal where their values are, whatever their size and form.
func TestNumbersAreComparedByTheirExactValue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b  string
		equal bool
	}{
		{"18446744073709551617", "18446744073709551617", true},
		{"18446744073709551617", "18446744073709551616", false},
		{"18446744073709551615", "18446744073709551615.0", true},
		{"18446744073709551616", "1.8446744073709551616e19", true},
		{"9007199254740993.0", "9007199254740993", true},
		{"9007199254740993.0", "9007199254740992", false},
		{"-9007199254740993.0", "-9007199254740993", true},
		{"-9007199254740993.0", "9007199254740993", false},
		{"0.10000000000000000001", "0.1", false},
		{"0.10000000000000000000", "0.1", true},
		{"1", "1.0", true},
		{"1e0", "1", true},
		{"100", "1e2", true},
		{"1e300", "1000e297", true},
		{"0", "-0.0", true},
		{"0e999", "0", true},
		{"1e-400", "0", false},
		{"1e-400", "10e-401", true},
		{"1234567890123456789012345678901234567890", "1234567890123456789012345678901234567891", false},
		{"1e99999999999999999999", "10e99999999999999999998", true},
		{"1e99999999999999999999", "1e99999999999999999998", false},
		{"1e308", "1e307", false},
		{"123456789012345.6", "123456789012345.60", true},
		{"0.1", "1e-1", true},
		{"1e400", "1e401", false},
	} {
		for _, pair := range [][2]string{{c.a, c.b}, {c.b, c.a}} {
			f, err := Compile([]byte(`{"n":` + pair[0] + `}`))
			if err != nil {
				t.Fatalf("%s: %v", pair[0], err)
			}
			got, err := f.Match(NewInput("a", []byte(`{"n":`+pair[1]+`}`), nil))
			if err != nil || got != c.equal {
				t.Errorf("a filter for %s takes %s: %t, %v; want %t", pair[0], pair[1], got, err, c.equal)
			}
		}
	}
}

// CEL has doubles alone beyond 64 bits, and computes with them.
func TestAnExpressionReadsLargeNumbersAsDoubles(t *testing.T) {
	t.Parallel()
	data := []byte(`{"a":18446744073709551617,"list":[{"b":0.12345678901234567890}],"s":"x"}`)
	for _, expression := range []string{"data.a > 1.8e19", "data.list[0].b < 0.2", "data.a + 0.5 > 1.0 && data.s == 'x'"} {
		f, err := Compile(fmt.Appendf(nil, "%q", expression))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := f.Match(NewInput("a", data, nil)); err != nil || !got {
			t.Errorf("%s: %t, %v", expression, got, err)
		}
	}
}
