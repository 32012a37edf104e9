package bulk

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/fault"
)

// Filter is what a job selects, as it is stored and shown. Which fields count depends on the kind. Ids are in their
// outer form.
type Filter struct {
	Status   string          `json:"status,omitempty"` // of deliveries; or delivery.OnHold, delivery.DeadLetter, delivery.AllFailed
	Endpoint string          `json:"endpoint,omitempty"`
	Type     string          `json:"type,omitempty"`
	Channel  string          `json:"channel,omitempty"`
	Since    *time.Time      `json:"since,omitempty"` // created at or after
	Until    *time.Time      `json:"until,omitempty"` // created before
	Archived bool            `json:"archived,omitempty"`
	IDs      []string        `json:"ids,omitempty"`   // of deliveries; then nothing else counts
	Match    json.RawMessage `json:"match,omitempty"` // over an event's data, as the filter of an endpoint
	Below    int64           `json:"below,omitempty"` // rows of the queue up to this number
}

// stored is how a job keeps its filter in jsonb, which can't hold \u0000 or half of a surrogate pair. A condition
// with these is kept as a text. In its place is a condition that matches nothing, for processes that know no such
// text.
type stored struct {
	Filter
	MatchText string `json:"match_text,omitempty"`
}

var unstorable = regexp.MustCompile(`(?i)\\u(0000|d[89a-f])`)

// Store is the filter as a job keeps it.
func (f Filter) Store() ([]byte, error) {
	s := stored{Filter: f}
	if unstorable.Match(f.Match) {
		s.Match, s.MatchText = json.RawMessage(`"false"`), string(f.Match)
	}
	return json.Marshal(s)
}

// ReadFilter reads what Store wrote.
func ReadFilter(text []byte) (Filter, error) {
	var s stored
	if err := json.Unmarshal(text, &s); err != nil {
		return Filter{}, err
	}
	if s.MatchText != "" {
		s.Match = json.RawMessage(s.MatchText)
	}
	return s.Filter, nil
}

// Faults says what is wrong with the filter of a kind over deliveries; the fields by themselves are well formed.
func (f Filter) Faults(k Kind) (wrong []fault.Field) {
	if len(f.IDs) > 0 {
		if f.Status != "" || f.Endpoint != "" || f.Type != "" || f.Channel != "" || f.Since != nil || f.Until != nil ||
			f.Archived {
			wrong = append(wrong, fault.Field{Name: "filter.ids", Code: "filter_ids_alone", Detail: "A filter with ids can't have other fields. Leave out the ids or the other fields."})
		}
		return wrong
	}
	statuses, settled := k.selectable()
	words := make([]string, 0, len(statuses)+1)
	for _, s := range statuses {
		words = append(words, s.String())
	}
	switch {
	case k == Cancel:
		words = append(words, delivery.OnHold)
	case settled:
		words = append(words, delivery.DeadLetter, delivery.AllFailed)
	}
	if !slices.Contains(words, f.Status) {
		wrong = append(wrong, fault.Field{Name: "filter.status", Code: "filter_status", Detail: "Specify which deliveries: set status to one of " + strings.Join(words, ", ") + ", or list their ids."})
	}
	if f.Since != nil && f.Until != nil && !f.Since.Before(*f.Until) {
		wrong = append(wrong, fault.Field{Name: "filter.until", Code: "filter_times", Detail: "until must be later than since."})
	}
	return wrong
}
