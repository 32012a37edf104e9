package catalogue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"posthorn/domain/fault"
	"posthorn/domain/filter"
)

// VersionNames are the names of versions, the oldest first: numbers within a name count as numbers, so that v2 comes
// before v10, and dates follow the calendar.
func VersionNames(versions map[string]Version) []string {
	return slices.SortedFunc(maps.Keys(versions), compareVersions)
}

// CheckPinned refuses a version that an endpoint asks for where types that it subscribes to declare versions and none
// of them this one: the endpoint would get nothing of them. versions are the declared ones by type.
func CheckPinned(version string, patterns []string, versions map[string]map[string]Version) error {
	known := map[string]Version{}
	for name, declared := range versions {
		if !filter.MatchType(patterns, name) {
			continue
		}
		if _, ok := declared[version]; ok {
			return nil
		}
		maps.Copy(known, declared)
	}
	if len(known) == 0 {
		return nil
	}
	return fault.InvalidField("payload_version", "unknown_version", fmt.Sprintf(
		"None of the endpoint's event types declares this version. They declare %s. Choose one of them, or leave payload_version out for all.",
		strings.Join(VersionNames(known), ", ")))
}

// compareVersions compares names part by part, each either digits or something else.
func compareVersions(a, b string) int {
	for x, y := a, b; ; {
		var p, q string
		p, x = part(x)
		q, y = part(y)
		switch {
		case p == "" || q == "":
			return cmp.Or(cmp.Compare(len(p), len(q)), strings.Compare(a, b)) // as 1.0 and 1.00
		case digit(p[0]) && digit(q[0]):
			m, n := strings.TrimLeft(p, "0"), strings.TrimLeft(q, "0")
			if c := cmp.Or(cmp.Compare(len(m), len(n)), strings.Compare(m, n)); c != 0 {
				return c
			}
		case p != q:
			return strings.Compare(p, q)
		}
	}
}

// part splits off what a name begins with: its digits, or what comes before the first of them.
func part(name string) (first, rest string) {
	i := 0
	for i < len(name) && digit(name[i]) == digit(name[0]) {
		i++
	}
	return name[:i], name[i:]
}

func digit(b byte) bool { return '0' <= b && b <= '9' }
