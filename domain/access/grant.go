package access

import (
	"fmt"
	"strings"

	"posthorn/domain/fault"
)

// GrantScopes decides which scopes a new API key gets: each of the names once, in the order given. tenants:write goes
// to platform keys alone, and a key without any scope is refused, since it could do nothing. The error is a
// *fault.Error with code scope_unknown, scope_platform_only or scopes_missing, and the field scopes.
func GrantScopes(names []string, platform bool) (Scopes, error) {
	allowed := TenantScopes()
	if platform {
		allowed = PlatformScopes()
	}
	granted, unknown := ParseScopes(names, allowed)
	switch {
	case len(unknown) > 0 && unknown[0] == string(TenantsWrite):
		return nil, fault.InvalidField("scopes", "scope_platform_only", "Only platform keys can have the scope tenants:write. Leave it out, or create a platform key.")
	case len(unknown) > 0:
		return nil, fault.InvalidField(
			"scopes",
			"scope_unknown",
			fmt.Sprintf("Unknown scope %.64q. Use one or more of %s.", unknown[0], strings.Join(Scopes(allowed).Names(), ", ")),
		)
	case len(granted) == 0:
		return nil, fault.InvalidField(
			"scopes",
			"scopes_missing",
			fmt.Sprintf("A key needs at least one scope. Use one or more of %s.", strings.Join(Scopes(allowed).Names(), ", ")),
		)
	}
	return granted, nil
}
