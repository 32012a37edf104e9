package pages

import (
	"strconv"
	"time"

	"posthorn/domain/delivery"
	"posthorn/domain/show"
	"posthorn/domain/signature"
	"posthorn/views/components"
	"posthorn/views/layout"
)

// SharedView is one delivery as a read-only link shows it.
type SharedView struct {
	Shell layout.Shell
	Self  string // the address of the page
	show.Delivery
	Attempts  []show.Attempt // oldest first
	Chosen    *AttemptDetail // nil: there was none yet
	ExpiresAt time.Time
}

func (v SharedView) attempt(n int) string { return v.Self + "&attempt=" + strconv.Itoa(n) }

// newestFirst are the attempts, the newest first.
func (v SharedView) newestFirst() []show.Attempt {
	return show.DeliveryDetail{Attempts: v.Attempts}.NewestFirst()
}

// headers are the request's headers without what would let somebody forge it.
func (v SharedView) headers() string {
	shown := make([]signature.Header, len(v.Chosen.Request.Headers))
	for i, h := range v.Chosen.Request.Headers {
		h.Value = delivery.ShareHeader(h.Name, h.Value, v.Chosen.Signature)
		shown[i] = h
	}
	return headerText(shown)
}

// shareLives are how long a new link can be opened.
func shareLives() []components.Option {
	return []components.Option{
		{Label: "1 hour", Value: strconv.Itoa(delivery.ShareLeast)},
		{Label: "24 hours", Value: strconv.Itoa(int(24 * time.Hour / time.Second))},
		{Label: "7 days", Value: strconv.Itoa(delivery.ShareMost)},
	}
}
