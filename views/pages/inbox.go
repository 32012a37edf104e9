package pages

import (
	"time"

	"posthorn/domain/endpoint"
	"posthorn/domain/inbox"
	"posthorn/views/components"
)

// InboxView is the list of a test inbox's requests.
type InboxView struct {
	EndpointHead
	Poll         string // the address that refreshes the parts
	Answer       inbox.Answer
	Wrong        string // an error of the selected response
	Rows         []InboxRow
	Chosen       *InboxDetail
	Verification VerificationView
	Hidden       bool // the role can't read payloads
}

// InboxRow is a request in the list.
type InboxRow struct {
	ID, Href  string
	At        time.Time
	Challenge bool // a verification
	Good      bool // its signature
	Answer    inbox.Answer
	Bytes     int
	Chosen    bool
}

// InboxDetail is one complete request.
type InboxDetail struct {
	InboxRow
	Method string
	Why    string // why the signature was rejected
	Secret string // the end of the matching secret
	Head   string
	Body   Excerpt
}

func (r InboxRow) what() string {
	if r.Challenge {
		return "Verification"
	}
	return "Delivery"
}

// answered is the inbox's response; a verification is always echoed.
func (r InboxRow) answered() string {
	switch {
	case r.Challenge:
		return "echoed"
	case r.Answer == inbox.Slow:
		return "too slow"
	}
	return string(r.Answer)
}

func (r InboxRow) tone() components.Tone {
	if r.Challenge || r.Answer == inbox.OK {
		return components.Good
	}
	return components.Bad
}

func (v InboxView) mayTest() bool { return v.MayChange && v.Status == endpoint.Active }

func inboxAnswers() []components.Option {
	return []components.Option{
		{Value: string(inbox.OK), Label: "200", Hint: "Every delivery succeeds."},
		{Value: string(inbox.Error), Label: "500", Hint: "Every attempt fails, and is retried on the endpoint's schedule."},
		{Value: string(inbox.Gone), Label: "410", Hint: "The receiver wants no more events: Posthorn disables the endpoint immediately."},
		{Value: string(inbox.Slow), Label: "Timeout", Hint: "Every attempt exceeds the endpoint's timeout."},
	}
}
