package console

import (
	"strings"
	"time"

	"posthorn/domain/egress"
	"posthorn/domain/id"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// EgressView lists the egress proxies, with the form that sets one.
type EgressView struct {
	Shell   layout.Shell
	Root    string
	Now     time.Time
	Proxies []egress.ProxyStatus
	Types   []components.Option
	Resolve components.ChoiceProps

	Owner, Type, Address, Username, Password, Published components.FieldProps
}

// proxyOwner is the word that the forms have for a proxy's owner.
func proxyOwner(p egress.ProxyStatus) string {
	if p.Owner.IsZero() {
		return egress.PlatformOwner
	}
	return id.Tenant.Format(p.Owner)
}

// proxyAbout is the proxy's protocol, how it authenticates us, and who resolves names.
func proxyAbout(p egress.ProxyStatus) string {
	parts := []string{p.Type.Label()}
	switch {
	case p.HasPassword:
		parts = append(parts, p.Username+" with a password")
	case p.Username != "":
		parts = append(parts, p.Username)
	}
	if p.ResolveNames {
		parts = append(parts, "resolves names")
	}
	return strings.Join(parts, ", ")
}
