package pages

import (
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
	Rows         []inbox.Received
	Chosen       *InboxDetail
	Verification VerificationView
	Hidden       bool // the role can't read payloads
}

// InboxDetail is one complete request.
type InboxDetail struct {
	inbox.Received
	Excerpt Excerpt // of its body
}

func requestWhat(r inbox.Received) string {
	if r.Challenge {
		return "Verification"
	}
	return "Delivery"
}

// answered is the inbox's response; a verification is always echoed.
func answered(r inbox.Received) string {
	switch {
	case r.Challenge:
		return "echoed"
	case r.Answer == inbox.Slow:
		return "too slow"
	}
	return string(r.Answer)
}

func answerTone(r inbox.Received) components.Tone {
	if r.Challenge || r.Answer == inbox.OK {
		return components.Good
	}
	return components.Bad
}

func (v InboxView) mayTest() bool { return v.MayChange && v.Endpoint.Status == endpoint.Active }

func inboxAnswers() []components.Option {
	return []components.Option{
		{Value: string(inbox.OK), Label: "200", Hint: "Every delivery succeeds."},
		{Value: string(inbox.Error), Label: "500", Hint: "Every attempt fails, and is retried on the endpoint's schedule."},
		{Value: string(inbox.Gone), Label: "410", Hint: "The receiver wants no more events: the endpoint is disabled immediately."},
		{Value: string(inbox.Slow), Label: "Timeout", Hint: "Every attempt exceeds the endpoint's timeout."},
	}
}
