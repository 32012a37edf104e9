package emails

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"posthorn/domain/delivery"
	"posthorn/domain/endpoint"
	"posthorn/domain/health"
	"posthorn/domain/mail"
	"posthorn/domain/notice"
	"posthorn/domain/words"
)

// Notice builds the mail of a notice. An error means that its details can't be read.
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
	case notice.FeedUnread:
		return write(d, feedUnread)
	case notice.SourceFailing:
		return write(d, sourceFailing)
	case notice.SecretRotated:
		return write(d, secretRotated)
	case notice.CertificateExpiring:
		return write(d, certificateExpiring)
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

// write fills a template with a notice's details and adds the parts of all notices.
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
	l.Why = fmt.Sprintf("You're receiving this because notices of %s are sent to you.", tenant)
	l.Preferences, l.Unsubscribe = d.Preferences, d.Unsubscribe
	return l, nil
}

// docsPage is the guide on a notice, which is served beside the dashboard. Empty: the dashboard's address is unknown.
func docsPage(d mail.NoticeData) Link {
	base, _, found := strings.Cut(d.Dashboard, "/t/")
	if !found {
		return Link{}
	}
	switch notice.Kind(d.Kind) {
	case notice.EndpointWarning, notice.EndpointDisabled, notice.EndpointRecovered, notice.DeliveryFailed,
		notice.Digest, notice.HeldExpiring:
		return Link{"How to recover and replay", base + "/docs/replay"}
	case notice.CertificateExpiring:
		return Link{"Client certificates", base + "/docs/mtls"}
	case notice.FeedUnread:
		return Link{"How to read a feed", base + "/docs/feeds"}
	case notice.SourceFailing:
		return Link{"How sources are read", base + "/docs/sources"}
	case notice.SecretRotated:
		return Link{"How to verify signatures", base + "/docs/verify"}
	}
	return Link{"Documentation", base + "/docs"}
}

// endpointPage is the address of an endpoint's page.
func endpointPage(d mail.NoticeData, endpoint string) string {
	return d.Dashboard + "/endpoints/" + endpoint
}

// called names an endpoint: its description in quotation marks, else its host.
func called(description, url string) string {
	if mail.TenantText(description) == "" {
		description = url
	}
	return "“" + endpointName(description) + "”"
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
		l.Body = append(l.Body, text("Deliveries to %s fail. After %s without a success in between, the endpoint is disabled.", name, health.Reason(e.Reason).More(e.FailuresLeft)))
	default:
		l.Body = append(l.Body, text("Deliveries to %s fail. If that goes on, the endpoint is disabled.", name))
	}
	after := "Once it's disabled, new deliveries to it are held."
	if e.Drops {
		after = "Once it's disabled, new events create no deliveries to it, as configured for this endpoint."
	}
	l.Body = append(l.Body, endpointFacts(e))
	l.Body = append(l.Body, excerpt(e)...)
	l.Body = append(l.Body,
		text("What to do: %s", action(e)),
		text("%s %s", permanent(e), after),
		text("One successful delivery ends the countdown."),
		button("View endpoint", endpointPage(d, e.Endpoint)),
	)
	l.Body = append(l.Body, failedButton(d, e)...)
	return l
}

// permanent describes the failed deliveries: whether they are retried, and how many have to be replayed.
func permanent(e notice.EndpointDetails) string {
	rejects := e.Reason == string(health.Auth) && !e.RetryClientErrors
	rest := "permanently. They won't be retried. Fix the cause, then replay them."
	if e.FailedPermanently == 1 && !e.FailedMore {
		rest = "permanently. It won't be retried. Fix the cause, then replay it."
	}
	switch n := e.FailedPermanently; {
	case n == 0 && rejects:
		return "Deliveries that are rejected with 401, 403, or 404 fail permanently after one retry at most, because this endpoint doesn't retry 4xx responses."
	case n == 0:
		return "No delivery has failed permanently yet: failed attempts are retried on the endpoint's schedule."
	case rejects:
		return "This endpoint doesn't retry 4xx responses: " + failedCount(e) + " " + rest
	}
	return sentenceCase(failedCount(e)) + " " + rest
}

func failedCount(e notice.EndpointDetails) string {
	n := words.Count(e.FailedPermanently, "delivery has failed", "deliveries have failed")
	if e.FailedMore {
		return "at least " + n
	}
	return n
}

func sentenceCase(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// failedButton links to the permanently failed deliveries, if there are any.
func failedButton(d mail.NoticeData, e notice.EndpointDetails) []Block {
	if e.FailedPermanently == 0 {
		return nil
	}
	return []Block{button("View failed deliveries", d.Dashboard+"/deliveries?status=dead_letter&endpoint="+e.Endpoint)}
}

func disabled(d mail.NoticeData, e notice.EndpointDetails) Letter {
	name := called(e.Description, e.URL)
	preview, during := "Nothing is sent to it, and new deliveries are held.", "New deliveries are held, and none is lost."
	if e.Drops {
		preview, during = "Nothing is sent to it.", "Waiting deliveries are held. New events create no deliveries to it, as configured for this endpoint."
	}
	l := Letter{
		Subject: fmt.Sprintf("%s was disabled", name),
		Preview: preview,
		Heading: "An endpoint was disabled",
		Tone:    Bad,
		Body:    []Block{text("%s was disabled. %s Nothing is sent to it. %s", name, disabledWhy(e), during), endpointFacts(e)},
	}
	l.Body = append(append(l.Body, excerpt(e)...), text("What to do: %s", action(e)))
	if e.Reason == string(health.Auth) && e.LastStatus != 404 {
		l.Body = append(l.Body, text("If you recently changed a secret, make sure that your server verifies signatures with the endpoint's current secret, and that no token in its custom headers has expired."))
	}
	replay := "Replay the deliveries that failed permanently since the first failure."
	if e.FailedPermanently > 0 {
		replay = fmt.Sprintf("Replay what failed since the first failure: %s permanently.", failedCount(e))
	}
	l.Body = append(l.Body, text("After the fix:"), Block{List: []string{
		"Resume the endpoint. It's verified first. Held deliveries are then sent at the endpoint's own rate or dropped, as you choose.",
		replay,
	}}, button("Fix and resume", endpointPage(d, e.Endpoint)))
	l.Body = append(l.Body, failedButton(d, e)...)
	return l
}

// disabledWhy is the sentence why an endpoint was disabled.
func disabledWhy(e notice.EndpointDetails) string {
	if why := health.Reason(e.Reason).Sentence(e.AuthStreak, e.ConsecutiveFailures); why != "" {
		return why + "."
	}
	return "Its deliveries failed."
}

func recovered(d mail.NoticeData, e notice.EndpointDetails) Letter {
	name := called(e.Description, e.URL)
	return Letter{
		Subject: fmt.Sprintf("%s has recovered", name),
		Preview: "Waiting deliveries are being sent.",
		Heading: "An endpoint has recovered",
		Tone:    Good,
		Body: []Block{
			text("%s responds successfully again. Waiting deliveries are being sent at the endpoint's own rate, and it will no longer be disabled.", name),
			facts(Fact{"Endpoint", mail.TenantHost(e.URL)},
				Fact{"First failure", momentOrNone(e.FirstFailureAt)}, Fact{"Last failure", momentOrNone(e.LastFailureAt)},
				Fact{"Last success", momentOrNone(e.LastSuccessAt)}, Fact{"Waiting", counted(e.Held, e.HeldMore)}),
			text("Deliveries that failed permanently aren't retried. You can replay them on the endpoint's page."),
			button("View endpoint", endpointPage(d, e.Endpoint)),
		},
	}
}

func heldExpiring(d mail.NoticeData, h notice.HeldDetails) Letter {
	name := called(h.Description, h.URL)
	preview, before := "Resume the endpoint before then, or they fail permanently.", "Resume the endpoint before then, and choose whether to deliver or drop held deliveries."
	if h.Status == string(endpoint.Unverified) {
		preview = "Verify the endpoint before then, or they fail permanently."
		before = "Verify the endpoint before then. Its page sends another challenge and shows the expected response."
	}
	return Letter{
		Subject: fmt.Sprintf("Held deliveries to %s expire soon", name),
		Preview: preview,
		Heading: "Held deliveries are about to expire",
		Tone:    Careful,
		Body: []Block{
			text("Deliveries to %s are held because the endpoint is %s. The oldest of them expires on %s and then fails permanently.", name, orWord(h.Status, "not active"), moment(h.ExpiresAt)),
			facts(Fact{"Endpoint", mail.TenantHost(h.URL)}, Fact{"Held", counted(h.Held, h.HeldMore)}, Fact{"First expires", moment(h.ExpiresAt)}),
			text("%s", before),
			button("View endpoint", endpointPage(d, h.Endpoint)),
		},
	}
}

func certificateExpiring(d mail.NoticeData, c notice.CertificateDetails) Letter {
	name := called(c.Description, c.URL)
	l := Letter{
		Subject: fmt.Sprintf("The client certificate of %s expires on %s", name, c.ExpiresAt.UTC().Format("2 January")),
		Preview: "Install a new one before then, or the receiver rejects its deliveries.",
		Heading: "A client certificate is about to expire",
		Tone:    Careful,
	}
	said := fmt.Sprintf("The client certificate with which deliveries to %s connect expires on %s. After that the receiver rejects them.", name, moment(c.ExpiresAt))
	if c.Expired {
		l.Subject = fmt.Sprintf("The client certificate of %s has expired", name)
		l.Preview = "Install a new one: the receiver rejects its deliveries until then."
		l.Heading = "A client certificate has expired"
		said = fmt.Sprintf("The client certificate with which deliveries to %s connect expired on %s. The receiver rejects them until there is a new one.", name, moment(c.ExpiresAt))
	}
	l.Body = []Block{
		text("%s", said),
		facts(Fact{"Endpoint", mail.TenantHost(c.URL)}, Fact{"Expires", moment(c.ExpiresAt)}),
		text("Get a new certificate from whoever issued this one, and install it in the endpoint's settings, under Authentication. With the same private key the certificate alone is enough."),
		button("View endpoint", endpointPage(d, c.Endpoint)),
	}
	return l
}

func feedUnread(d mail.NoticeData, f notice.FeedDetails) Letter {
	name := called(f.Description, "the feed "+f.Endpoint)
	l := Letter{
		Subject: fmt.Sprintf("Nobody reads the feed %s", name),
		Preview: "Its events stay in the log for as long as events are kept.",
		Heading: "A feed is not read",
		Tone:    Careful,
	}
	switch {
	case f.Disabled:
		l.Tone, l.Heading = Bad, "A feed was disabled"
		l.Subject = fmt.Sprintf("The feed %s was disabled", name)
		l.Body = append(l.Body, text("Nobody has read the feed %s since %s, so it was disabled. Resume it to read it: its consumers continue where they stopped, as far as events are kept.", name, momentOrNone(f.Since)))
	case f.Consumer != "":
		l.Heading = "A consumer of a feed is late"
		l.Subject = fmt.Sprintf("The consumer %s of the feed %s is late", f.Consumer, name)
		l.Body = append(l.Body,
			text("The consumer %s of the feed %s has not acknowledged events that were accepted since %s. Check that its program runs, and that it acknowledges what it has finished.", f.Consumer, name, momentOrNone(f.Since)),
			facts(Fact{"Consumer", mail.TenantText(f.Consumer)}, Fact{"Events behind", counted(int64(f.Events), f.EventsMore)}, Fact{"Since", momentOrNone(f.Since)}))
	case f.DisableAt != nil:
		l.Subject = fmt.Sprintf("The feed %s will be disabled on %s", name, f.DisableAt.UTC().Format("2 January, 15:04")+" UTC")
		l.Body = append(l.Body, text("Nobody has read the feed %s since %s. Unless somebody reads it before, it is disabled on %s.", name, momentOrNone(f.Since), moment(*f.DisableAt)))
	}
	where := mail.TenantHost(f.URL)
	if f.URL == endpoint.FeedURL {
		where = f.Endpoint
	}
	l.Body = append(l.Body, facts(Fact{"Feed", where}), button("View feed", endpointPage(d, f.Endpoint)))
	return l
}

func sourceFailing(d mail.NoticeData, s notice.SourceDetails) Letter {
	name := "“" + mail.TenantText(s.Name) + "”"
	l := Letter{
		Subject: fmt.Sprintf("The source %s can't be read", name),
		Preview: "Its messages wait in your broker.",
		Heading: "A source can't be read",
		Tone:    Careful,
		Body:    []Block{text("The source %s can't be read since %s. It is tried again at least once a minute, and its messages wait in your broker.", name, moment(s.Since))},
	}
	waiting := ""
	if s.Behind {
		l.Subject, l.Heading = fmt.Sprintf("The source %s falls behind", name), "A source falls behind"
		l.Body = []Block{text("More messages arrive at the source %s than are taken since %s.", name, moment(s.Since))}
		waiting = words.Number(s.Waiting)
	}
	l.Body = append(l.Body, facts(Fact{"Reason", mail.TenantText(s.Reason)}, Fact{"Messages waiting", waiting}), button("View source", d.Dashboard+"/sources/"+s.Source))
	return l
}

func secretRotated(d mail.NoticeData, s notice.SecretDetails) Letter {
	name := called(s.Description, s.URL)
	l := Letter{
		Subject: fmt.Sprintf("The signing secret of %s was rotated", name),
		Preview: "Make sure that your server has the new secret.",
		Heading: "A signing secret was rotated",
		Body: []Block{
			text("The endpoint %s has a new signing secret.", name),
			facts(Fact{"Endpoint", mail.TenantHost(s.URL)}, Fact{"New secret ends in", s.Hint}, Fact{"Old secret signs until", momentOrNone(s.OldUntil)},
				Fact{"By", mail.TenantText(s.By)}, Fact{"When", moment(d.At)}),
		},
	}
	if s.OldUntil != nil {
		l.Body = append(l.Body, text("Until then, deliveries can also be verified with the old secret. Install the new secret in your server before then."))
	} else {
		l.Body = append(l.Body, text("The old secret no longer signs. A server without the new secret rejects deliveries."))
	}
	l.Body = append(l.Body,
		text("If nobody on your team did this, rotate the secret again and check the audit log."),
		button("View endpoint", endpointPage(d, s.Endpoint)),
	)
	return l
}

func keyCreated(d mail.NoticeData, k notice.KeyDetails) Letter {
	expires := momentOrNone(k.ExpiresAt)
	if expires == "" {
		expires = "never"
	}
	return Letter{
		Subject: fmt.Sprintf("An API key was created: %s", quoted(k.Name)),
		Preview: "If nobody on your team did this, revoke it.",
		Heading: "An API key was created",
		Body: []Block{
			facts(Fact{"Name", mail.TenantText(k.Name)}, Fact{"Prefix", k.Prefix}, Fact{"Scopes", strings.Join(k.Scopes, ", ")},
				Fact{"Expires", expires}, Fact{"By", mail.TenantText(k.By)}, Fact{"When", moment(d.At)}),
			text("If nobody on your team did this, revoke the key and check the audit log."),
			button("View API keys", d.Dashboard+"/keys"),
		},
	}
}

func deliveryFailed(d mail.NoticeData, f notice.FailedDetails) Letter {
	return Letter{
		Subject: fmt.Sprintf("A delivery of %s failed permanently", mail.TenantText(f.EventType)),
		Preview: "It won't be retried.",
		Heading: "A delivery failed permanently",
		Tone:    Careful,
		Body: []Block{
			facts(Fact{"Endpoint", mail.TenantHost(f.URL)}, Fact{"Event", f.Event},
				Fact{"Type", mail.TenantText(f.EventType)}, Fact{"Reason", failedWhy(f.Reason)},
				Fact{"Attempts", words.Number(f.Attempts)}, Fact{"Last response", delivery.LastAnswerText(f.LastStatus, f.LastFailure)},
				Fact{"When", moment(f.FailedAt)}),
			text("It won't be retried. Fix the cause, then replay it."),
			button("View delivery", d.Dashboard+"/deliveries/"+f.Delivery),
			button("View endpoint", endpointPage(d, f.Endpoint)),
		},
	}
}

// failedWhy is why a delivery failed permanently.
func failedWhy(reason string) string {
	switch reason {
	case delivery.Exhausted.String():
		return "exhausted: all scheduled attempts failed"
	case delivery.Rejected.String():
		return "rejected: the endpoint rejected it"
	case delivery.Gone.String():
		return "gone: the endpoint wants no more events"
	case delivery.Expired.String():
		return "expired: it waited too long"
	case delivery.EndpointDeleted.String():
		return "the endpoint was deleted"
	}
	return strings.ReplaceAll(reason, "_", " ")
}

func quota(d mail.NoticeData, q notice.QuotaDetails) Letter {
	l := Letter{
		Subject: fmt.Sprintf("Quota almost reached: %s", q.Quota),
		Preview: fmt.Sprintf("%s of %s.", words.Number(q.Used), words.Number(q.Limit)),
		Heading: "Quota almost reached",
		Tone:    Careful,
		Body: []Block{
			facts(
				Fact{"Quota", q.Quota},
				Fact{"Used", fmt.Sprintf("%s of %s", words.Number(q.Used), words.Number(q.Limit))},
				Fact{"Resets", momentOrNone(q.ResetsAt)},
			),
			text("When the quota is reached, events beyond it are rejected. Ask the operator of this Posthorn server for a higher quota before then."),
			button("View settings", d.Dashboard+"/settings"),
		},
	}
	if notice.Kind(d.Kind) == notice.QuotaReached {
		l.Subject, l.Heading, l.Tone = fmt.Sprintf("Quota reached: %s", q.Quota), "Quota reached", Bad
		l.Body[1] = text("Events beyond the quota are rejected. Ask the operator of this Posthorn server for a higher quota.")
	}
	return l
}

// endpointFacts are the known facts of an endpoint's failures.
func endpointFacts(e notice.EndpointDetails) Block {
	failures := ""
	if e.ConsecutiveFailures > 0 {
		failures = words.Number(e.ConsecutiveFailures)
	}
	return facts(
		Fact{"Endpoint", mail.TenantHost(e.URL)},
		Fact{"Last response", delivery.LastAnswerText(e.LastStatus, e.LastFailure)},
		Fact{"Most frequent", frequent(e)},
		Fact{"First failure", momentOrNone(e.FirstFailureAt)},
		Fact{"Last failure", momentOrNone(e.LastFailureAt)},
		Fact{"Last success", momentOrNone(e.LastSuccessAt)},
		Fact{"Consecutive failures", failures},
		Fact{"Failed permanently", counted(e.FailedPermanently, e.FailedMore)},
		Fact{"Held deliveries", counted(e.Held, e.HeldMore)},
	)
}

// frequent is the most frequent result of the last 24 hours' attempts.
func frequent(e notice.EndpointDetails) string {
	if e.Response == "" || e.ResponseCount == 0 {
		return ""
	}
	return fmt.Sprintf("%s: %s of %s in 24 hours", response(e.Response), words.Number(e.ResponseCount), words.Count(e.Attempts, "attempt", "attempts"))
}

// excerpt is the start of the last response with its type; empty if there was none.
func excerpt(e notice.EndpointDetails) []Block {
	text := mail.TenantText(strings.ToValidUTF8(e.LastExcerpt, "?"))
	if text == "" {
		return nil
	}
	return []Block{{Text: "Its last response starts with:"}, {Code: text}}
}

// response is a status, or the words for a failure.
func response(text string) string {
	if failure, known := delivery.ParseFailure(text); known && text != "" {
		return delivery.AnswerText(0, failure)
	}
	return text
}

// action is what to do about an endpoint, by the most frequent result of its attempts if counted, else by its last
// failure.
func action(e notice.EndpointDetails) string {
	if a := cmp.Or(e.Action, health.Problem(e.Problem).Action()); a != "" {
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
	return "Check the endpoint's last attempts: they show its responses."
}

func counted(n int64, more bool) string {
	switch {
	case n == 0:
		return ""
	case more:
		return "at least " + words.Number(n)
	}
	return words.Number(n)
}

func orWord(word, otherwise string) string {
	if word == "" {
		return otherwise
	}
	return word
}
