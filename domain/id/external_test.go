package id_test

import (
	"strings"
	"testing"

	"posthorn/domain/id"
)

func TestAnExternalIDIsAnyPlainTextThatIsNoIDOfPosthorn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"customer-42":                    true,
		"customer-42/hook-1":             true,
		"a b":                            true,
		"Zo\u00eb":                       true,
		strings.Repeat("\u00e9", 256):    true,
		"ep_1":                           true,
		"":                               false,
		" a":                             false,
		"a ":                             false,
		"a\nb":                           false,
		"\xff":                           false,
		".":                              false,
		"..":                             false,
		strings.Repeat("a", 257):         false,
		"ten_01jd0000000000000000000000": false,
	} {
		if got := id.ValidExternal(id.Tenant, text); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}
