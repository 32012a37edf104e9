package filter_test

import (
	"fmt"
	"strings"
	"testing"

	"posthorn/domain/filter"
)

func TestAWrongExpressionIsExplainedInWordsForPeople(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"data.total >":       "at line 1, column 13: the expression ends too early.",
		"data.total > > 3":   "at line 1, column 14: '>' is not expected here.",
		"data.":              "'.' is not expected here.",
		"foo == 1":           "column 1: 'foo' is unknown.",
		"foo(1)":             "'foo' is unknown.",
		"data.x == 'a":       "a string starts here and isn't closed",
		"(data.x == 1":       "')' is missing.",
		"data.x == 1)":       "')' is not expected here.",
		"data.x = 1":         "'=' is not expected here; == compares.",
		"type > 3":           "'>' does not work on string and int.",
		"type.startsWith(1)": "startsWith() does not work on string.(int).",
		"data[":              "the expression ends too early.",
		"data.x ? 1":         "the expression ends too early; ':' is missing.",
		"[1,2":               "the expression ends too early.",
		"§":                  "'§' can't be read.",
		"has(data)":          "has() needs a field",
	} {
		_, err := filter.Compile(fmt.Appendf(nil, "%q", expression))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", expression, err, want)
			continue
		}
		for _, leak := range []string{"EOF", "expecting", "NUM_", "IDENTIFIER", "Syntax error", "overload"} {
			if strings.Contains(err.Error(), leak) {
				t.Errorf("%s tells of the grammar: %v", expression, err)
			}
		}
	}
}
