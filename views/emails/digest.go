package emails

import (
	"fmt"

	"posthorn/domain/mail"
	"posthorn/domain/notice"
)

// digest is the day's summary of a tenant with which not all is well.
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
		findings = append(findings, f.Detail)
	}
	if s.FailedDeliveries > 0 {
		findings = append(findings, fmt.Sprintf("%s in the last 24 hours.", plural(s.FailedDeliveries, "delivery failed for good", "deliveries failed for good")))
	}
	l.Body = append(l.Body, Block{List: findings})
	if s.Action != "" {
		l.Body = append(l.Body, text("What to do first: %s", s.Action))
	}
	latency := ""
	if s.Attempts > 0 {
		latency = fmt.Sprintf("%s ms at p50, %s ms at p95", thousands(s.P50Milliseconds), thousands(s.P95Milliseconds))
	}
	l.Body = append(l.Body, facts(
		Fact{"Active endpoints", thousands(int64(s.ActiveEndpoints))},
		Fact{"Success in 24 hours", s.SuccessDay},
		Fact{"Success in the last hour", s.SuccessHour},
		Fact{"Attempts", thousands(s.Attempts)},
		Fact{"Retries", thousands(s.Retries)},
		Fact{"Failed for good", thousands(s.FailedDeliveries)},
		Fact{"Latency", latency},
	))
	if len(s.Endpoints) > 0 {
		l.Body = append(l.Body, text("What failed most:"))
		table := Block{}
		for _, e := range s.Endpoints {
			table.Facts = append(table.Facts, Fact{clip(e.URL, 60), fmt.Sprintf("%s of %s attempts failed (%s)", thousands(e.Failed), thousands(e.Attempts), e.Status)})
		}
		l.Body = append(l.Body, table, button("Look at the first endpoint", endpointPage(d, s.Endpoints[0].Endpoint)))
	}
	if s.FailedDeliveries > 0 {
		l.Body = append(l.Body, button("See what failed", d.Dashboard+"/deliveries?status=failed"))
	} else if len(s.Endpoints) == 0 {
		l.Body = append(l.Body, button("Open the overview", d.Dashboard))
	}
	return l
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(n) + " " + many
}
