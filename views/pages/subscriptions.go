package pages

import (
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// SubscriptionsView is the list of subscriptions of AI clients.
type SubscriptionsView struct {
	Shell        layout.Shell
	Root         string
	Rows         []show.Subscription
	Principal    string
	Wrong        map[string]string
	Newer, Older string
	MayChange    bool
	MayOpen      bool // can decide how clients sign in
}

// MCPAccessView is how people of the tenant's product reach its server themselves.
type MCPAccessView struct {
	Shell      layout.Shell
	List, Root string
	Resource   string // the address of the server
	Fields     []components.FieldProps
	Hosts      components.FieldProps
	wrong      map[string]string
}

// Refuse marks the fields that are wrong.
func (v *MCPAccessView) Refuse(wrong map[string]string) {
	v.wrong = wrong
	for i := range v.Fields {
		v.Fields[i].Error = wrong[v.Fields[i].Name]
	}
	v.Hosts.Error = wrong[v.Hosts.Name]
}

func (v SubscriptionsView) endpoint(s show.Subscription) string {
	return v.Root + "/endpoints/" + id.Endpoint.Format(s.Endpoint.ID)
}

// argumentsText is the arguments of a subscription; none is every event.
func argumentsText(s show.Subscription) string {
	if text := string(s.Arguments); text != "{}" {
		return text
	}
	return "all"
}
