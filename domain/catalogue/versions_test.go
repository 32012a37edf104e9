package catalogue

import (
	"slices"
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
