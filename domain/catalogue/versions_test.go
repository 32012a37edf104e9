package catalogue

import (
	"slices"
	"strings"
	"testing"
)

func TestVersionsFollowEachOtherAsPeopleCountThem(t *testing.T) {
	t.Parallel()
	for _, want := range [][]string{
		{"v1", "v2", "v10", "v11"},
		{"1", "2", "10", "100"},
		{"1.0", "1.2", "1.10", "2.0"},
		{"1", "1.0", "1.00", "1.1"},
		{"2025-12-31", "2026-01-31", "2026-02-01"},
		{"9", "2026-01-31", "v1", "v1-beta2", "v1-beta10", "v2"},
		{"18446744073709551616", "18446744073709551617"},
	} {
		versions := map[string]Version{}
		for _, name := range want {
			versions[name] = Version{}
		}
		if got := VersionNames(versions); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		for i, a := range want {
			for j, b := range want {
				if got := compareVersions(a, b); (got < 0) != (i < j) || (got == 0) != (i == j) {
					t.Errorf("%q and %q: %d", a, b, got)
				}
			}
		}
	}
	if got := VersionNames(nil); len(got) != 0 {
		t.Errorf("no versions are %q", got)
	}
}

func TestAnEndpointIsPinnedToADeclaredVersion(t *testing.T) {
	t.Parallel()
	versions := map[string]map[string]Version{
		"order.paid":   {"2026-01-01": {}, "2026-06-01": {}},
		"invoice.sent": {"v2": {}, "v10": {}},
	}
	for _, tt := range []struct {
		version  string
		patterns []string
		detail   string // empty: accepted
	}{
		{"2026-01-01", []string{"*"}, ""},
		{"v10", []string{"invoice.*", "order.paid"}, ""},
		{"2O26-01-01", []string{"order.*"}, "They declare 2026-01-01, 2026-06-01."},
		{"2026-01-01", []string{"invoice.sent"}, "They declare v2, v10."},
		{"anything", []string{"customer.*"}, ""},
	} {
		err := CheckPinned(tt.version, tt.patterns, versions)
		if (err == nil) != (tt.detail == "") || err != nil && !strings.Contains(err.Error(), tt.detail) {
			t.Errorf("%s of %v: %v, want %q", tt.version, tt.patterns, err, tt.detail)
		}
	}
}
