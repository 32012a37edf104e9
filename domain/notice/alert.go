package notice

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/words"
)

// AlertPrefix begins the event types of notices in their own tenant. Tenants can't emit such types, and a subscription
// to * does not include them.
const AlertPrefix = "posthorn."

// EventType is the type of the event that a notice of the kind becomes in its own tenant.
func (k Kind) EventType() string { return AlertPrefix + string(k) }

// Status says whether a notice opens an alert or ends it.
type Status string

// The statuses.
const (
	Triggered Status = "triggered"
	Resolved  Status = "resolved"
)

// Status is what notices of the kind do to an alert.
func (k Kind) Status() Status {
	if k == EndpointRecovered || k == TenantResumed || k == DispatchResumed {
		return Resolved
	}
	return Triggered
}

// subject is what notices of several kinds are about together: one ends what another opened. Empty: each notice of the
// kind is an alert of its own.
func (k Kind) subject() string {
	switch k {
	case EndpointWarning, EndpointDisabled, EndpointRecovered:
		return "endpoint.health"
	case HeldExpiring, FeedUnread, CertificateExpiring, Digest, QuotaWarning, QuotaReached:
		return string(k)
	case TenantSuspended, TenantResumed:
		return "tenant.suspended"
	case DispatchPaused, DispatchResumed:
		return "dispatch.paused"
	}
	return ""
}

// Together are the kinds whose notices are one alert with those of k: some open it, another ends it.
func (k Kind) Together() []Kind {
	if k.subject() == "" {
		return []Kind{k}
	}
	return slices.DeleteFunc(Kinds(), func(o Kind) bool { return o.subject() != k.subject() })
}

// Posted is a notice as it is posted.
type Posted struct {
	Kind     Kind
	ID       string // of the notice, or of the delivery that failed
	Tenant   id.UUID
	Endpoint *id.UUID
	At       time.Time
	Details  json.RawMessage
}

// Alert is the data of an event that a notice becomes in its own tenant: what a chat, a pager or a program needs.
type Alert struct {
	Title    string          `json:"title"`
	Message  string          `json:"message"`
	Severity Severity        `json:"severity"`
	Status   Status          `json:"status"`
	DedupKey string          `json:"dedup_key"` // the same for the notices that open an alert and end it
	Source   string          `json:"source"`    // the endpoint, or the tenant
	URL      string          `json:"url"`       // of the page that shows what to do
	Notice   string          `json:"notice"`    // its kind
	NoticeID string          `json:"notice_id,omitempty"`
	Tenant   string          `json:"tenant_id"`
	Endpoint string          `json:"endpoint_id,omitempty"`
	At       time.Time       `json:"at"`
	Details  json.RawMessage `json:"details"`
}

// alertFacts are the details that a message names, of any kind.
type alertFacts struct {
	URL                 string     `json:"url"`
	Description         string     `json:"description"`
	Reason              string     `json:"reason"`
	AuthStreak          int        `json:"auth_streak"`
	ConsecutiveFailures int        `json:"consecutive_failures"`
	LastStatus          int        `json:"last_status"`
	LastFailure         string     `json:"last_failure"`
	DisableAt           *time.Time `json:"disable_at"`
	ExpiresAt           *time.Time `json:"expires_at"`
	Held                int64      `json:"held"`
	HeldMore            bool       `json:"held_more"`
	FailedPermanently   int64      `json:"failed_permanently"`
	FailedMore          bool       `json:"failed_more"`
	Action              string     `json:"action"`
	EventType           string     `json:"event_type"`
	Delivery            string     `json:"delivery"`
	Attempts            int64      `json:"attempts"`
	Consumer            string     `json:"consumer"`
	SourceID            string     `json:"source"`
	Name                string     `json:"name"`
	By                  string     `json:"by"`
	Quota               string     `json:"quota"`
	Used                int64      `json:"used"`
	Limit               int64      `json:"limit"`
}

// AlertOf makes the alert of a notice. dashboard is the address of the tenant's pages. Details that can't be read leave
// their lines out.
func AlertOf(p Posted, dashboard string) Alert {
	var f alertFacts
	_ = json.Unmarshal(p.Details, &f)
	a := Alert{
		Title:    p.Kind.Label(),
		Severity: p.Kind.Severity(),
		Status:   p.Kind.Status(),
		Source:   id.Tenant.Format(p.Tenant),
		URL:      dashboard + p.Kind.page(),
		Notice:   string(p.Kind),
		NoticeID: p.ID,
		Tenant:   id.Tenant.Format(p.Tenant),
		At:       p.At.UTC(),
		Details:  p.Details,
	}
	if p.Endpoint != nil {
		a.Endpoint = id.Endpoint.Format(*p.Endpoint)
		a.Source, a.URL = a.Endpoint, dashboard+"/endpoints/"+a.Endpoint
	}
	if p.Kind == SourceFailing && f.SourceID != "" {
		a.URL = dashboard + "/sources/" + f.SourceID
	}
	if p.Kind == DeliveryFailed && f.Delivery != "" {
		a.URL = dashboard + "/deliveries/" + f.Delivery
		a.NoticeID = ""
	}
	if name := f.called(p.Kind); name != "" {
		a.Title += ": " + name
	}
	a.Message = strings.Join(f.lines(p.Kind), "\n")
	if a.DedupKey = a.Source + ":" + p.Kind.subject(); p.Kind.subject() == "" {
		a.DedupKey = a.Source + ":" + string(p.Kind) + ":" + p.ID
	}
	return a
}

// page is where a notice that concerns no endpoint leads to.
func (k Kind) page() string {
	switch k {
	case KeyCreated:
		return "/keys"
	case QuotaWarning, QuotaReached:
		return "/settings"
	}
	return "/notices"
}

// called names what a notice is about.
func (f alertFacts) called(k Kind) string {
	text := f.Description
	switch {
	case k == KeyCreated, k == SourceFailing:
		text = f.Name
	case f.Quota != "":
		text = f.Quota
	case text == "":
		text = f.URL
	}
	if r := []rune(text); len(r) > maxCalled {
		text = string(r[:maxCalled]) + "…"
	}
	return text
}

// maxCalled bounds a name in a title: receivers cut longer titles anywhere.
const maxCalled = 200

// lines are the sentences and facts of a message.
func (f alertFacts) lines(k Kind) []string {
	var all []string
	add := func(when bool, format string, args ...any) {
		if when {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	if k == EndpointDisabled {
		why := health.Reason(f.Reason).Sentence(f.AuthStreak, f.ConsecutiveFailures)
		add(why != "", "%s.", why)
	}
	add(f.DisableAt != nil, "Disabled on: %s", moment(f.DisableAt))
	add(f.ExpiresAt != nil, "Expires: %s", moment(f.ExpiresAt))
	add(f.EventType != "", "Event type: %s", f.EventType)
	add(f.Consumer != "", "Consumer: %s", f.Consumer)
	add(k == DeliveryFailed && f.Reason != "", "Reason: %s", f.Reason)
	add(k == SourceFailing && f.Reason != "", "%s", f.Reason)
	add(k.OfOperator() && f.Reason != "", "Reason: %s", f.Reason)
	if last := delivery.LastAnswerText(f.LastStatus, f.LastFailure); f.LastStatus != 0 || f.LastFailure != "" {
		add(true, "Last response: %s", last)
	}
	add(f.Held > 0, "Held deliveries: %s", atLeast(f.Held, f.HeldMore))
	add(f.FailedPermanently > 0, "Failed permanently: %s", atLeast(f.FailedPermanently, f.FailedMore))
	add(f.Quota != "", "Used: %s of %s", words.Number(f.Used), words.Number(f.Limit))
	add(f.By != "", "By: %s", f.By)
	add(f.Action != "" && k.Status() == Triggered, "What to do: %s", f.Action)
	if len(all) == 0 {
		return []string{k.Label() + "."}
	}
	return all
}

// OfOperator reports whether notices of the kind say what an operator did.
func (k Kind) OfOperator() bool {
	return k == TenantSuspended || k == TenantResumed || k == DispatchPaused || k == DispatchResumed
}

func moment(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func atLeast(n int64, more bool) string {
	if more {
		return "at least " + words.Number(n)
	}
	return words.Number(n)
}
