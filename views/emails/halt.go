package emails

import (
	"posthorn/domain/mail"
	"posthorn/domain/notice"
)

// halted tells a tenant what the operator did to all of its deliveries.
func halted(d mail.NoticeData, h notice.HaltDetails) Letter {
	l := Letter{Tone: Bad}
	var what string
	switch notice.Kind(d.Kind) {
	case notice.TenantSuspended:
		l.Subject, l.Preview = "This tenant was suspended", "Nothing is delivered until the operator resumes it."
		what = "The people who run this Posthorn suspended this tenant. Its data can be read. Nothing can be changed, events are rejected, and deliveries wait."
	case notice.TenantResumed:
		l.Subject, l.Preview, l.Tone = "This tenant was resumed", "Deliveries that waited are sent now.", Good
		what = "The people who run this Posthorn resumed this tenant. Events are accepted again, and deliveries that waited are sent at the rate of their endpoints."
	case notice.DispatchPaused:
		l.Subject, l.Preview = "Deliveries were paused by the operator", "Events are accepted and kept."
		what = "The people who run this Posthorn paused the deliveries of this tenant. Events are accepted and kept, and they are delivered when the pause ends."
	default:
		l.Subject, l.Preview, l.Tone = "Deliveries were resumed by the operator", "Deliveries that waited are sent now.", Good
		what = "The people who run this Posthorn ended the pause. Deliveries that waited are sent at the rate of their endpoints."
	}
	l.Heading = l.Subject
	l.Body = []Block{
		text("%s", what),
		facts(Fact{"Reason", clip(h.Reason, 500)}, Fact{"When", moment(h.At)}),
		button("Open the dashboard", d.Dashboard+"/"),
	}
	return l
}
