package pages

import (
	"strings"
	"time"

	"posthorn/domain/condition"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// EndpointsView is the list of a tenant's endpoints.
type EndpointsView struct {
	Shell     layout.Shell
	Root      string // /t/ten_.../endpoints
	MayChange bool
	Query     string
	Status    string
	Total     int // of the tenant; the rows are what the filters leave
	Rows      []EndpointRow
}

// EndpointRow is one of them.
type EndpointRow struct {
	Href        string
	Kind        endpoint.Kind
	URL         string // masked
	Description string
	Condition   condition.Condition
	EventTypes  []string
	Rate        health.Rate
	LastAnswer  time.Time
}

// badge is a word for what a URL does not tell: that nothing of the outside receives there.
func (r EndpointRow) badge() string {
	switch r.Kind {
	case endpoint.Listen:
		return "listener"
	case endpoint.Inbox:
		return "test inbox"
	}
	return ""
}

func (v EndpointsView) clear() string {
	if v.Query == "" && v.Status == "" {
		return ""
	}
	return v.Root
}

func stateOptions() []components.Option {
	out := []components.Option{{Label: "All states"}}
	for _, s := range condition.States() {
		out = append(out, components.Option{Label: capital(s.Word()), Value: string(s)})
	}
	return out
}

// typesText names what an endpoint subscribes to, in a line.
func typesText(patterns []string) string {
	switch {
	case len(patterns) == 1 && patterns[0] == "*":
		return "All events"
	case len(patterns) <= 2:
		return strings.Join(patterns, ", ")
	}
	return strings.Join(patterns[:2], ", ") + " and " + components.Count(int64(len(patterns)-2)) + " more"
}
