package sso

import (
	"slices"
	"strings"

	"posthorn/domain/fault"
)

// Gap is why claims don't tell which groups a person is in. Empty: they tell it, also where they name no group.
type Gap string

// The gaps.
const (
	Absent     Gap = "absent"     // the claim was not sent
	Overage    Gap = "overage"    // there are more groups than the provider puts in a token
	Unreadable Gap = "unreadable" // the claim has a form without names
)

// Sentence says what the provider left out, and who can help. It is empty without a gap.
func (g Gap) Sentence() string {
	switch g {
	case Absent:
		return "The provider didn't send the claim with this person's groups. " +
			"The administrator of the provider has to send it, as an empty list for people without groups."
	case Overage:
		return "The provider left this person's groups out because there are too many. " +
			"The administrator of the provider has to limit the claim to the groups assigned to the application."
	case Unreadable:
		return "The provider sent this person's groups in a form that can't be read. " +
			"The administrator of the provider has to send a list of names."
	}
	return ""
}

// RoleKept says that somebody's role stayed because of the gap. It is empty without a gap.
func (g Gap) RoleKept() string {
	if g == "" {
		return ""
	}
	return "Role kept. " + g.Sentence()
}

// Refusal rejects someone who has no role yet because the provider did not tell the groups.
func (g Gap) Refusal() error { return fault.New(fault.Forbidden, "sso_groups_not_told", g.Sentence()) }

// Groups reads the values of a claim. A dot leads into an object, or into each object of a list, unless a claim has
// that very name.
func Groups(claims map[string]any, claim string) (names []string, gap Gap) {
	found := find(claims, claim)
	if len(found) == 0 {
		if leftOut(claims, claim) {
			return nil, Overage
		}
		return nil, Absent
	}
	readable := false
	for _, value := range found {
		some, ok := namesIn(value)
		names, readable = append(names, some...), readable || ok
	}
	if !readable {
		gap = Unreadable
	}
	return names, gap
}

// leftOut reports whether the claims say that a claim has too many values for a token. _claim_names is of OpenID
// Connect Core, section 5.6.2; hasgroups is Microsoft Entra's sign in tokens of the implicit flow.
func leftOut(claims map[string]any, claim string) bool {
	elsewhere, _ := claims["_claim_names"].(map[string]any)
	first, _, _ := strings.Cut(claim, ".")
	_, whole := elsewhere[claim]
	_, part := elsewhere[first]
	return whole || part || claim == "groups" && set(claims["hasgroups"])
}

// find returns what a path leads to: several values where it goes through a list, none where the claim is absent.
func find(in any, path string) (found []any) {
	switch v := in.(type) {
	case map[string]any:
		if value, ok := v[path]; ok && value != nil {
			return []any{value}
		}
		if first, rest, dotted := strings.Cut(path, "."); dotted {
			return find(v[first], rest)
		}
	case []any:
		for _, one := range v {
			found = append(found, find(one, path)...)
		}
		if found == nil && len(v) == 0 {
			return []any{v} // an empty list says that there are none
		}
	}
	return found
}

// namesIn are the groups that a value names: a text, a list of texts or of objects with a name, or the names in an
// object. It reports whether the value has one of these forms.
func namesIn(value any) (names []string, readable bool) {
	switch v := value.(type) {
	case string:
		return slices.DeleteFunc([]string{v}, func(s string) bool { return s == "" }), true
	case []any:
		readable = len(v) == 0
		for _, one := range v {
			name, ok := nameOf(one)
			if readable = readable || ok; name != "" {
				names = append(names, name)
			}
		}
		return names, readable
	case map[string]any:
		for name, value := range v {
			if name != "" && set(value) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names, true
	}
	return nil, false
}

// nameOf is the name of one group in a list: a text, or an object as providers write groups. SCIM's value is an id.
func nameOf(one any) (name string, readable bool) {
	switch v := one.(type) {
	case string:
		return v, true
	case map[string]any:
		for _, key := range []string{"name", "display", "displayName", "value", "id"} {
			if name, readable = v[key].(string); readable {
				return name, true
			}
		}
	}
	return "", false
}

// set reports whether a value in an object says that its name counts: not false, null, zero, or empty.
func set(value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != "" && !strings.EqualFold(v, "false")
	case float64:
		return v != 0
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}
