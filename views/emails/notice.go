package emails

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/mail"
	"posthorn/domain/notice"
)

// Notice is the mail of a notice; an error means that its details can't be read.
func Notice(d mail.NoticeData) (Letter, error) {
	switch notice.Kind(d.Kind) {
	case notice.EndpointWarning:
		return write(d, warned)
	case notice.EndpointDisabled:
		return write(d, disabled)
	case notice.EndpointRecovered:
		return write(d, recovered)
	case notice.HeldExpiring:
		return write(d, heldExpiring)
	case notice.SecretRotated:
		return write(d, secretRotated)
	case notice.KeyCreated:
		return write(d, keyCreated)
	case notice.DeliveryFailed:
		return write(d, deliveryFailed)
	case notice.Digest:
		return write(d, digest)
	case notice.QuotaWarning, notice.QuotaReached:
		return write(d, quota)
	case notice.TenantSuspended, notice.TenantResumed, notice.DispatchPaused, notice.DispatchResumed:
		return write(d, halted)
	}
	return Letter{}, fmt.Errorf("there is no template for notices of kind %q", d.Kind)
}

// write fills a template with a notice's details and adds what all notices have.
func write[T any](d mail.NoticeData, template func(mail.NoticeData, T) Letter) (Letter, error) {
	var details T
	if err := json.Unmarshal(d.Details, &details); err != nil {
		return Letter{}, fmt.Errorf("details of a notice of kind %s: %w", d.Kind, err)
	}
	l := template(d, details)
	l.Body = slices.DeleteFunc(l.Body, Block.empty)
	l.Docs = docsPage(d)
	tenant := quoted(d.TenantName)
	l.Subject = clip(fmt.Sprintf("%s: %s", tenant, l.Subject), 140)
	l.Why = fmt.Sprintf("You get this mail because notices of %s are sent to you.", tenant)
	l.Preferences, l.Unsubscribe = d.Preferences, d.Unsubscribe
	return l, nil
}

// docsPage is the guide that belongs to a notice; it is served beside the dashboard. Empty: the dashboard's address is not known.
func docsPage(d mail.NoticeData) Link {
	base, _, found := strings.Cut(d.Dashboard, "/t/")
	if !found {
		return Link{}
	}
	switch notice.Kind(d.Kind) {
	case notice.EndpointWarning, notice.EndpointDisabled, notice.EndpointRecovered, notice.DeliveryFailed, notice.Digest, notice.HeldExpiring:
		return Link{"How to recover and replay", base + "/docs/replay"}
	case notice.SecretRotated:
		return Link{"How to verify signatures", base + "/docs/verify"}
	}
	return Link{"Documentation", base + "/docs"}
}

// endpointPage is where an endpoint is looked after.
func endpointPage(d mail.NoticeData, endpoint string) string {
	return d.Dashboard + "/endpoints/" + endpoint
}

// called is what people call an endpoint: its description in quotation marks, else its URL.
func called(description, url string) string {
	if name := clip(description, 60); name != "" {
		return "“" + name + "”"
	}
	return clip(url, 80)
}

func warned(d mail.NoticeData, e notice.EndpointDetails) Letter {
	name := called(e.Description, e.URL)
	l := Letter{
		Subject: fmt.Sprintf("%s will be disabled unless a delivery succeeds", name),
		Preview: "One successful delivery ends the countdown.",
		Heading: "An endpoint is about to be disabled",
		Tone:    Careful,
	}
	switch {
	case e.DisableAt != nil:
		l.Subject = fmt.Sprintf("%s will be disabled on %s", name, e.DisableAt.UTC().Format("2 January, 15:04")+" UTC")
		l.Body = append(l.Body, text("Deliveries to %s fail. Unless one succeeds before, the endpoint is disabled on %s.", name, moment(*e.DisableAt)))
	case e.FailuresLeft > 0:
		l.Body = append(l.Body, text("Deliveries to %s fail. After %s without a success in between, the endpoint is disabled.", name, plural(int64(e.FailuresLeft), "more failure", "more failures")))
	default:
		l.Body = append(l.Body, text("Deliveries to %s fail. If that goes on, the endpoint is disabled.", name))
	}
	after := "After it is disabled, new deliveries to it are held."
	if e.Drops {
		after = "After it is disabled, new events make no delivery to it, as the endpoint is set."
	}
	l.Body = append(l.Body, endpointFacts(e))
	l.Body = append(l.Body, excerpt(e)...)
	l.Body = append(l.Body,
		text("What to do: %s", action(e)),
		text("%s %s", permanent(e), after),
		text("One successful delivery ends the countdown."),
		button("See the endpoint", endpointPage(d, e.Endpoint)),
	)
	l.Body = append(l.Body, failedButton(d, e)...)
	return l
}

// permanent says what has become of the deliveries that failed: whether they are tried again, and how many have to be replayed.
func permanent(e notice.EndpointDetails) string {
	rejects := e.Reason == string(health.Auth) && !e.RetryClientErrors
	switch n := e.FailedPermanently; {
	case n == 0 && rejects:
		return "Deliveries that are rejected with 401, 403, or 404 fail permanently at the first attempt, because this endpoint doesn't retry 4xx responses."
	case n == 0:
		return "No delivery has failed permanently yet: failed attempts are retried on the endpoint's schedule."
	case rejects:
		return fmt.Sprintf("This endpoint doesn't retry 4xx responses: %s permanently at the first attempt. They are not sent again by themselves. Fix the cause, then replay them.", failedCount(e))
	}
	return fmt.Sprintf("%s permanently. They are not sent again by themselves. Fix the cause, then replay them.", sentenceCase(failedCount(e)))
}

func failedCount(e notice.EndpointDetails) string {
	n := plural(e.FailedPermanently, "delivery has failed", "deliveries have failed")
	if e.FailedMore {
		return "at least " + n
	}
	return n
}

func sentenceCase(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// failedButton leads to what failed permanently, where anything did.
func failedButton(d mail.NoticeData, e notice.EndpointDetails) []Block {
	if e.FailedPermanently == 0 {
		return nil
	}
	return []Block{button("See the failed deliveries", d.Dashboard+"/deliveries?status=dead_letter&endpoint="+e.Endpoint)}
}

func disabled(d mail.NoticeData, e notice.EndpointDetails) Letter {
	name := called(e.Description, e.URL)
	preview, meanwhile := "Nothing is sent to it any more; what is emitted for it is held.", "Events that are emitted for it are held, not lost."
	if e.Drops {
		preview, meanwhile = "Nothing is sent to it any more.", "What waits for it is held; events that are emitted from now on make no delivery to it, as the endpoint is set."
	}
	l := Letter{
		Subject: fmt.Sprintf("%s was disabled", name),
		Preview: preview,
		Heading: "An endpoint was disabled",
		Tone:    Bad,
		Body:    []Block{text("%s was disabled. %s Nothing is sent there any more. %s", name, disabledWhy(e), meanwhile), endpointFacts(e)},
	}
	l.Body = append(append(l.Body, excerpt(e)...), text("What to do: %s", action(e)))
	if e.Reason == string(health.Auth) && e.LastStatus != 404 {
		l.Body = append(l.Body, text("If a secret was changed lately, make sure that your server verifies signatures with the one that the endpoint has now, and that a token in the custom headers has not expired."))
	}
	replay := "Replay the deliveries that failed permanently since the first failure."
	if e.FailedPermanently > 0 {
		replay = fmt.Sprintf("Replay what failed since the first failure: %s permanently.", failedCount(e))
	}
	l.Body = append(l.Body,
		text("When it is fixed:"),
		Block{List: []string{
			"Resume the endpoint. It is verified first. Then held deliveries are sent at the endpoint's own rate, or dropped, as you choose.",
			replay,
		}},
		button("Fix and resume", endpointPage(d, e.Endpoint)),
	)
	l.Body = append(l.Body, failedButton(d, e)...)
	return l
}

// disabledWhy says in a sentence why an endpoint was disabled.
func disabledWhy(e notice.EndpointDetails) string {
	if why := health.Reason(e.Reason).Sentence(e.AuthStreak, e.ConsecutiveFailures); why != "" {
		return why + "."
	}
	return "Its deliveries failed."
}

func recovered(d mail.NoticeData, e notice.EndpointDetails) Letter {
	name := called(e.Description, e.URL)
	return Letter{
		Subject: fmt.Sprintf("%s works again", name),
		Preview: "What waits for it is being delivered.",
		Heading: "An endpoint works again",
		Tone:    Good,
		Body: []Block{
			text("%s answers as it should again. What waits for it is being delivered at the endpoint's own rate, and no countdown to a disabling runs any more.", name),
			facts(Fact{"Endpoint", e.URL}, Fact{"First failure", momentOrNone(e.FirstFailureAt)}, Fact{"Last failure", momentOrNone(e.LastFailureAt)},
				Fact{"Last success", momentOrNone(e.LastSuccessAt)}, Fact{"Waiting", counted(e.Held, e.HeldMore)}),
			text("What had failed for good before is not sent again by itself: the page can replay it."),
			button("Look at the endpoint", endpointPage(d, e.Endpoint)),
		},
	}
}

func heldExpiring(d mail.NoticeData, h notice.HeldDetails) Letter {
	name := called(h.Description, h.URL)
	preview, before := "Resume the endpoint before, or they end as failed.", "Resume the endpoint before, and choose whether what is held is delivered or dropped."
	if h.Status == string(endpoint.Unverified) {
		preview = "Let the endpoint prove itself before, or they end as failed."
		before = "Let the endpoint prove itself before: its page sends it another challenge, and says what its server has to answer."
	}
	return Letter{
		Subject: fmt.Sprintf("Held deliveries to %s expire soon", name),
		Preview: preview,
		Heading: "Held deliveries are about to expire",
		Tone:    Careful,
		Body: []Block{
			text("Deliveries to %s are held, since the endpoint is %s. The oldest of them reaches the end of its time on %s, and ends as failed then.", name, orWord(h.Status, "not active"), moment(h.ExpiresAt)),
			facts(Fact{"Endpoint", h.URL}, Fact{"Held", counted(h.Held, h.HeldMore)}, Fact{"The first expires", moment(h.ExpiresAt)}),
			text("%s", before),
			button("Look at the endpoint", endpointPage(d, h.Endpoint)),
		},
	}
}

func secretRotated(d mail.NoticeData, s notice.SecretDetails) Letter {
	name := called(s.Description, s.URL)
	l := Letter{
		Subject: fmt.Sprintf("The signing secret of %s was rotated", name),
		Preview: "Make sure that your server knows the new one.",
		Heading: "A signing secret was rotated",
		Body: []Block{
			text("The endpoint %s has a new signing secret.", name),
			facts(Fact{"Endpoint", s.URL}, Fact{"New secret ends in", s.Hint}, Fact{"Old one signs until", momentOrNone(s.OldUntil)},
				Fact{"By", s.By}, Fact{"When", moment(d.At)}),
		},
	}
	if s.OldUntil != nil {
		l.Body = append(l.Body, text("Until then deliveries can be verified with the old secret too. Give your server the new one before."))
	} else {
		l.Body = append(l.Body, text("The old secret signs nothing any more: a server that does not know the new one refuses deliveries."))
	}
	l.Body = append(l.Body,
		text("If none of you did this, rotate it again and look at the audit log for who it was."),
		button("Look at the endpoint", endpointPage(d, s.Endpoint)),
	)
	return l
}

func keyCreated(d mail.NoticeData, k notice.KeyDetails) Letter {
	expires := momentOrNone(k.ExpiresAt)
	if expires == "" {
		expires = "never"
	}
	return Letter{
		Subject: fmt.Sprintf("An API key was created: %s", clip(k.Name, 60)),
		Preview: "If none of you did this, revoke it.",
		Heading: "An API key was created",
		Body: []Block{
			facts(Fact{"Name", clip(k.Name, 100)}, Fact{"Begins with", k.Prefix}, Fact{"May", strings.Join(k.Scopes, ", ")},
				Fact{"Expires", expires}, Fact{"By", k.By}, Fact{"When", moment(d.At)}),
			text("If none of you did this, revoke the key, and look at the audit log for who it was."),
			button("See the keys", d.Dashboard+"/keys"),
		},
	}
}

func deliveryFailed(d mail.NoticeData, f notice.FailedDetails) Letter {
	return Letter{
		Subject: fmt.Sprintf("A delivery of %s failed for good", clip(f.EventType, 60)),
		Preview: "It is not tried again by itself.",
		Heading: "A delivery failed for good",
		Tone:    Careful,
		Body: []Block{
			facts(Fact{"Endpoint", f.URL}, Fact{"Event", f.Event}, Fact{"Type", f.EventType}, Fact{"Reason", failedWhy(f.Reason)},
				Fact{"Attempts", thousands(int64(f.Attempts))}, Fact{"Last answer", lastAnswer(f.LastStatus, f.LastFailure)}, Fact{"When", moment(f.FailedAt)}),
			text("It is not tried again by itself. When the cause is mended, replay it."),
			button("Look at the delivery", d.Dashboard+"/deliveries/"+f.Delivery),
		},
	}
}

// failedWhy says why a delivery failed for good.
func failedWhy(reason string) string {
	switch reason {
	case delivery.Exhausted.String():
		return "exhausted: all attempts of its schedule failed"
	case delivery.Rejected.String():
		return "rejected: the endpoint's server refused it"
	case delivery.Gone.String():
		return "gone: the endpoint's server wants no more events"
	case delivery.Expired.String():
		return "expired: it waited for too long"
	case delivery.EndpointDeleted.String():
		return "the endpoint was deleted"
	}
	return strings.ReplaceAll(reason, "_", " ")
}

func quota(d mail.NoticeData, q notice.QuotaDetails) Letter {
	l := Letter{
		Subject: fmt.Sprintf("Most of your quota is used: %s", q.Quota),
		Preview: fmt.Sprintf("%s of %s.", thousands(q.Used), thousands(q.Limit)),
		Heading: "Most of a quota is used",
		Tone:    Careful,
		Body: []Block{
			facts(Fact{"Quota", q.Quota}, Fact{"Used", fmt.Sprintf("%s of %s", thousands(q.Used), thousands(q.Limit))}, Fact{"Starts anew", momentOrNone(q.ResetsAt)}),
			text("When it is used up, what would go beyond it is refused. Ask the people who run this Posthorn for more before."),
			button("See the settings", d.Dashboard+"/settings"),
		},
	}
	if notice.Kind(d.Kind) == notice.QuotaReached {
		l.Subject, l.Heading, l.Tone = fmt.Sprintf("A quota is used up: %s", q.Quota), "A quota is used up", Bad
		l.Body[1] = text("What goes beyond it is refused from now on. Ask the people who run this Posthorn for more.")
	}
	return l
}

// endpointFacts are what is known of an endpoint's failing.
func endpointFacts(e notice.EndpointDetails) Block {
	failures := ""
	if e.ConsecutiveFailures > 0 {
		failures = thousands(int64(e.ConsecutiveFailures))
	}
	return facts(
		Fact{"Endpoint", e.URL},
		Fact{"Last response", lastAnswer(e.LastStatus, e.LastFailure)},
		Fact{"Most frequent", frequent(e)},
		Fact{"First failure", momentOrNone(e.FirstFailureAt)},
		Fact{"Last failure", momentOrNone(e.LastFailureAt)},
		Fact{"Last success", momentOrNone(e.LastSuccessAt)},
		Fact{"Failures in a row", failures},
		Fact{"Failed permanently", counted(e.FailedPermanently, e.FailedMore)},
		Fact{"Held deliveries", counted(e.Held, e.HeldMore)},
	)
}

// frequent is what most attempts of the last 24 hours ended with.
func frequent(e notice.EndpointDetails) string {
	if e.Response == "" || e.ResponseCount == 0 {
		return ""
	}
	return fmt.Sprintf("%s: %s of %s in 24 hours", strings.ReplaceAll(e.Response, "_", " "), thousands(e.ResponseCount), plural(e.Attempts, "attempt", "attempts"))
}

// excerpt is the beginning of the last answer, with what it is; nothing where there was none.
func excerpt(e notice.EndpointDetails) []Block {
	text := strings.TrimSpace(strings.ToValidUTF8(e.LastExcerpt, "?"))
	if runes := []rune(text); len(runes) > 500 {
		text = string(runes[:500]) + "…"
	}
	if text == "" {
		return nil
	}
	return []Block{{Text: "Its last answer begins with:"}, {Code: text}}
}

// lastAnswer says in a word or two what came of the last attempt.
func lastAnswer(status int, failure string) string {
	switch {
	case failure != "":
		return strings.ReplaceAll(failure, "_", " ")
	case status > 0:
		return fmt.Sprintf("HTTP %d", status)
	}
	return ""
}

// action is what to do about an endpoint: by what most of its attempts ended with, where that was counted, else by its last failure.
func action(e notice.EndpointDetails) string {
	if a := health.Problem(e.Problem).Action(); a != "" {
		return a
	}
	failure, _ := delivery.ParseFailure(e.LastFailure)
	problem := health.ProblemOf(delivery.Result{Failure: failure, Status: e.LastStatus})
	if e.LastStatus == 0 && failure == delivery.FailNone {
		problem = ""
	}
	if a := problem.Action(); a != "" {
		return a
	}
	return "Look at the endpoint's last attempts: they say what its server answered."
}

func counted(n int64, more bool) string {
	switch {
	case n == 0:
		return ""
	case more:
		return "at least " + thousands(n)
	}
	return thousands(n)
}

func orWord(word, otherwise string) string {
	if word == "" {
		return otherwise
	}
	return word
}
