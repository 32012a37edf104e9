package access

import (
	"slices"
	"strings"
	"testing"

	"posthorn/domain/fault"
)

func TestTheScopesAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	tenant := []string{"events:write", "events:read", "webhooks:read", "webhooks:write", "keys:write", "members:write"}
	if got := Scopes(TenantScopes()).Names(); !slices.Equal(got, tenant) {
		t.Errorf("a tenant's key: %v", got)
	}
	if got := Scopes(PlatformScopes()).Names(); !slices.Equal(got, append(tenant, "tenants:write")) {
		t.Errorf("a platform key: %v", got)
	}
}

func TestNoScopeIncludesAnother(t *testing.T) {
	t.Parallel()
	for _, held := range PlatformScopes() {
		for _, wanted := range PlatformScopes() {
			if got := (Scopes{held}).Has(wanted); got != (held == wanted) {
				t.Errorf("%s counts for %s: %v", held, wanted, got)
			}
		}
		if (Scopes{}).Has(held) || Scopes(nil).Has(held) || (Scopes{held}).Has("") {
			t.Errorf("%s is had without being given, or gives what it is not", held)
		}
	}
}

func TestScopesAreGrantedByNameAndKind(t *testing.T) {
	t.Parallel()
	for names, code := range map[string]string{
		"events:write":                          "",
		"events:write events:read events:write": "",
		"events:write tenants:write":            "scope_platform_only",
		"events:delete":                         "scope_unknown",
		"Events:write":                          "scope_unknown",
		"events:*":                              "scope_unknown",
		"":                                      "scopes_missing",
	} {
		got, err := GrantScopes(strings.Fields(names), false)
		if code == "" {
			if err != nil || len(got) == 0 || len(got) > 2 || !got.Has(EventsWrite) {
				t.Errorf("%q: got %v, %v", names, got, err)
			}
			continue
		}
		if f := fault.As(err); got != nil || f == nil || f.Code != code || f.Fields[0].Name != "scopes" ||
			!strings.Contains(f.Detail, ".") {
			t.Errorf("%q: got %v, %v", names, got, err)
		}
	}
	if got, err := GrantScopes([]string{"tenants:write"}, true); err != nil || !got.Has(TenantsWrite) {
		t.Errorf("a platform key: got %v, %v", got, err)
	}
}
