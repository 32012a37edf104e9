package emails

import (
	"fmt"
	"slices"
	"strings"

	"posthorn/domain/condition"
	"posthorn/domain/mail"
	"posthorn/domain/notice"
	"posthorn/domain/words"
)

// digest is the daily summary of a tenant with problems.
func digest(d mail.NoticeData, s notice.DigestDetails) Letter {
	l := Letter{
		Subject: "Your webhooks need attention",
		Preview: "Success in 24 hours: " + s.SuccessDay,
		Heading: "Your webhooks need attention",
		Tone:    Careful,
	}
	switch s.Severity {
	case "critical":
		l.Tone = Bad
	case "ok":
		l.Subject = "Deliveries failed in the last 24 hours"
		l.Heading = l.Subject
	}
	var findings []string
	for _, f := range s.Findings {
		findings = append(findings, short(s, f.Detail))
	}
	if s.FailedDeliveries > 0 {
		line := fmt.Sprintf("%s in the last 24 hours.", words.Count(s.FailedDeliveries, "delivery failed permanently", "deliveries failed permanently"))
		if s.DeadLetters > 0 {
			line += " " + fmt.Sprintf("%s to be replayed or archived.", words.Count(s.DeadLetters, "dead letter is waiting", "dead letters are waiting"))
		}
		findings = append(findings, line)
	}
	l.Body = append(l.Body, Block{List: findings})
	l.Body = append(l.Body, digestAlerts(d, s)...)
	for _, r := range s.Recovered {
		detail := strings.ReplaceAll(r.Detail, r.Name, endpointName(r.Name))
		l.Body = append(l.Body, text("%s %s", mail.Unlinked(detail), moment(r.At)))
	}
	latency := ""
	if s.Attempts > 0 {
		latency = fmt.Sprintf("%s ms at p50, %s ms at p95", words.Number(s.P50Milliseconds), words.Number(s.P95Milliseconds))
	}
	l.Body = append(l.Body, facts(
		Fact{"Active endpoints", words.Number(s.ActiveEndpoints)},
		Fact{"Success in 24 hours", s.SuccessDay},
		Fact{"Success in the last hour", s.SuccessHour},
		Fact{"Attempts", words.Number(s.Attempts)},
		Fact{"Retries", words.Number(s.Retries)},
		Fact{"Failed permanently", words.Number(s.FailedDeliveries)},
		Fact{"Latency", latency},
	))
	if len(s.Endpoints) > 0 {
		l.Body = append(l.Body, text("Most failures:"))
		table := Block{}
		for _, e := range s.Endpoints {
			table.Facts = append(table.Facts, Fact{called(e.Name, e.URL), fmt.Sprintf("%s of %s attempts failed (%s)", words.Number(e.Failed),
				words.Number(e.Attempts), condition.State(e.Status).Word())})
		}
		l.Body = append(l.Body, table)
	}
	if s.FailedDeliveries > 0 {
		l.Body = append(l.Body, button("See failures", d.Dashboard+"/deliveries?status=dead_letter"))
	} else if len(s.Endpoints) == 0 {
		l.Body = append(l.Body, button("Open overview", d.Dashboard))
	}
	return l
}

// digestAlerts names each endpoint with an alert, what to do about it, and where. The most urgent comes first, and the
// button links to its endpoint.
func digestAlerts(d mail.NoticeData, s notice.DigestDetails) (out []Block) {
	first := slices.IndexFunc(s.Alerts, func(a notice.DigestAlert) bool { return a.Endpoint == s.ActionEndpoint })
	if first < 0 && s.Action != "" {
		out = append(out, text("What to do first: %s", short(s, s.Action)))
	}
	alerts := slices.Clone(s.Alerts)
	if first > 0 {
		alerts = slices.Insert(slices.Delete(alerts, first, first+1), 0, s.Alerts[first])
	}
	for i, a := range alerts {
		what := "What to do: "
		if i == 0 && first >= 0 {
			what = "What to do first: "
		}
		out = append(
			out,
			text("%s", short(s, a.Detail)),
			text("%s%s", what, short(s, a.Action)),
			button("See "+endpointName(a.Name), endpointPage(d, a.Endpoint)),
		)
	}
	if s.MoreAlerts > 0 {
		out = append(out, text("%s attention.", words.Count(s.MoreAlerts, "more endpoint needs", "more endpoints need")))
	}
	return out
}

// endpointName is a name of an endpoint: its description, or its URL or host, which are one word.
func endpointName(name string) string {
	if len(strings.Fields(name)) == 1 {
		return mail.TenantHost(name)
	}
	return mail.TenantText(name)
}

// short is a sentence about endpoints whose names are shortened.
func short(s notice.DigestDetails, sentence string) string {
	for _, a := range s.Alerts {
		if a.Name != "" {
			sentence = strings.ReplaceAll(sentence, a.Name, endpointName(a.Name))
		}
	}
	return mail.Unlinked(sentence)
}
