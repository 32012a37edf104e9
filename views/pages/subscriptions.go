package pages

import (
	"posthorn/domain/id"
	"posthorn/domain/show"
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
