package emails

import (
	"posthorn/domain/mail"
	"posthorn/domain/notice"
)

// halted tells a tenant that the operator stopped or resumed all of its deliveries.
func halted(d mail.NoticeData, h notice.HaltDetails) Letter {
	l := Letter{Tone: Bad}
	var what string
	switch notice.Kind(d.Kind) {
	case notice.TenantSuspended:
		l.Subject, l.Preview = "This tenant was suspended", "Nothing is delivered until the operator resumes it."
		what = "The operator of this Posthorn server suspended this tenant. Its data is read-only, events are rejected, and deliveries wait."
	case notice.TenantResumed:
		l.Subject, l.Preview, l.Tone = "This tenant was resumed", "Waiting deliveries are being sent now.", Good
		what = "The operator of this Posthorn server resumed this tenant. Events are accepted again, and waiting deliveries are sent at their endpoints' own rates."
	case notice.DispatchPaused:
		l.Subject, l.Preview = "Deliveries were paused by the operator", "Events are still accepted."
		what = "The operator of this Posthorn server paused the deliveries of this tenant. Events are still accepted, and are delivered when the pause ends."
	default:
		l.Subject, l.Preview, l.Tone = "Deliveries were resumed by the operator", "Waiting deliveries are being sent now.", Good
		what = "The operator of this Posthorn server ended the pause. Waiting deliveries are sent at their endpoints' own rates."
	}
	l.Heading = l.Subject
	l.Body = []Block{
		text("%s", what),
		facts(Fact{"Reason", clip(h.Reason, 500)}, Fact{"Time", moment(h.At)}),
		button("Open dashboard", d.Dashboard+"/"),
	}
	return l
}
