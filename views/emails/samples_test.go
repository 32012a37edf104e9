package emails_test

import (
	"encoding/json"
	"testing"
	"time"

	"posthorn/domain/mail"
	"posthorn/domain/notice"
	"posthorn/views/emails"
)

// at is the time of everything in the samples.
var at = time.Date(2031, 3, 9, 14, 5, 0, 0, time.UTC)

func before(d time.Duration) *time.Time {
	t := at.Add(-d)
	return &t
}

// sample is one letter of each kind, by name.
func samples(t *testing.T) map[string]emails.Letter {
	t.Helper()
	day := 24 * time.Hour
	ep := notice.EndpointDetails{
		Endpoint:            "ep_01jd0000000000000000000000",
		URL:                 "https://hooks.acme.example/posthorn?token=***",
		Description:         "Orders to the warehouse",
		Reason:              "unhealthy",
		ConsecutiveFailures: 1234,
		LastStatus:          503,
		FirstFailureAt:      before(3 * day),
		LastFailureAt:       before(time.Minute),
		LastSuccessAt:       before(3*day + time.Hour),
		LastExcerpt:         "<html><body>upstream connect error or disconnect/reset before headers</body></html>",
	}
	dated, lacking, off, auth, well := ep, ep, ep, ep, ep
	rejecting := ep
	rejecting.Reason, rejecting.AuthStreak, rejecting.ConsecutiveFailures, rejecting.FailuresLeft, rejecting.Stage = "auth",
		5, 0, 5, "approaching"
	rejecting.LastStatus, rejecting.LastExcerpt, rejecting.FailedPermanently, rejecting.Problem = 401, "", 5, "auth"
	rejecting.Response, rejecting.ResponseCount, rejecting.Attempts = "401", 5, 12
	soon := at.Add(day)
	dated.DisableAt, dated.Stage = &soon, "last_day"
	lacking.Description, lacking.FailuresLeft, lacking.LastStatus, lacking.LastFailure, lacking.LastExcerpt = "", 4, 0, "dns_error", ""
	off.Held, off.HeldMore = 10000, true
	auth.Reason, auth.AuthStreak, auth.LastStatus, auth.LastExcerpt, auth.Held = "auth", 10, 401, "invalid signature", 42
	well.LastStatus, well.Held, well.LastSuccessAt = 200, 812, before(0)
	dropping := off
	dropping.Drops, dropping.Reason, dropping.Held, dropping.HeldMore = true, "gone", 3, false
	dropping.LastStatus, dropping.LastExcerpt = 410, ""
	until := at.Add(day)
	all := map[string]emails.Letter{
		"verify_address": emails.VerifyAddress(mail.VerifyAddressData{Name: "Ada Lovelace", Link: "https://posthorn.example/verify-email/abc", Expires: at}),
		"reset_password": emails.ResetPassword(mail.ResetPasswordData{Name: "Ada Lovelace", Link: "https://posthorn.example/reset/abc", Expires: at, Address: "203.0.113.7"}),
		"operator_new":   emails.OperatorAccess(mail.OperatorAccessData{Server: "posthorn.example", By: "root", New: true, Link: "https://posthorn.example/console/setup?token=abc", Expires: at}),
		"operator_link":  emails.OperatorAccess(mail.OperatorAccessData{Server: "posthorn.example", By: "root", Link: "https://posthorn.example/console/setup?token=abc", Expires: at}),
		"verify_change":  emails.VerifyAddress(mail.VerifyAddressData{Name: "Ada Lovelace", Link: "https://posthorn.example/change-email?token=abc", Expires: at, Change: true}),
		"account_exists": emails.AccountExists(mail.AccountExistsData{Name: "Ada Lovelace", Tenant: "Acme", Link: "https://posthorn.example/sign-in?next=x", Reset: "https://posthorn.example/reset", Address: "203.0.113.7"}),
		"email_changed": emails.SignInAlert(mail.SignInAlertData{
			Name:    "Ada",
			What:    "The email address of your account was changed to eve@example.com",
			At:      at,
			Address: "203.0.113.7",
			Advice:  "contact an owner of your tenants now.",
		}),
		"email_asked": emails.SignInAlert(mail.SignInAlertData{
			Name:    "Ada",
			What:    "Someone asked to change the email address of your account to eve@example.com. It changes when the link in our email to that address is opened.",
			At:      at,
			Address: "203.0.113.7",
			Link:    "https://posthorn.example/account/sessions",
		}),
		"confirm_contact": emails.ConfirmContact(mail.ConfirmContactData{Tenant: "Acme", Link: "https://posthorn.example/unsubscribe/tok"}),
		"invitation":      emails.Invitation(mail.InvitationData{Tenant: "Acme", By: "Grace Hopper", Role: "developer", Link: "https://posthorn.example/invitations/abc", Expires: at}),
		"sign_in_alert":   emails.SignInAlert(mail.SignInAlertData{Name: "Ada", At: at, Address: "203.0.113.7", Browser: "Firefox on Linux", Link: "https://posthorn.example/account/sessions"}),
		"operator_alert": emails.OperatorAlert(mail.OperatorAlertData{
			What:     "An endpoint of Acme was disabled",
			Facts:    []mail.Fact{{Name: "Tenant", Value: "Acme (ten_01jd0000000000000000000000)"}, {Name: "Endpoint", Value: ep.URL}, {Name: "Reason", Value: "unhealthy"}},
			Link:     "https://posthorn.example/console/tenants/ten_01jd0000000000000000000000",
			LinkText: "View tenant",
			At:       at,
		}),
	}
	for name, n := range map[string]struct {
		kind    notice.Kind
		details any
	}{
		"warning_dated":   {notice.EndpointWarning, dated},
		"warning_counted": {notice.EndpointWarning, lacking},
		"warning_auth":    {notice.EndpointWarning, rejecting},
		"disabled":        {notice.EndpointDisabled, off},
		"disabled_auth":   {notice.EndpointDisabled, auth},
		"disabled_drops":  {notice.EndpointDisabled, dropping},
		"held_unverified": {notice.HeldExpiring, notice.HeldDetails{
			Endpoint:    ep.Endpoint,
			URL:         ep.URL,
			Description: ep.Description,
			Status:      "unverified",
			Held:        7,
			ExpiresAt:   soon,
		}},
		"recovered": {notice.EndpointRecovered, well},
		"held_expiring": {notice.HeldExpiring, notice.HeldDetails{
			Endpoint:  ep.Endpoint,
			URL:       ep.URL,
			Status:    "paused",
			Held:      1200,
			ExpiresAt: soon,
		}},
		"certificate_expiring": {notice.CertificateExpiring, notice.CertificateDetails{
			Endpoint:    ep.Endpoint,
			URL:         ep.URL,
			Description: ep.Description,
			ExpiresAt:   soon,
		}},
		"certificate_expired": {notice.CertificateExpiring, notice.CertificateDetails{
			Endpoint:  ep.Endpoint,
			URL:       ep.URL,
			ExpiresAt: soon,
			Expired:   true,
		}},
		"secret_rotated": {notice.SecretRotated, notice.SecretDetails{
			Endpoint:    ep.Endpoint,
			URL:         ep.URL,
			Description: ep.Description,
			Secret:      "sec_x",
			Hint:        "…9fQ=",
			OldUntil:    &until,
			By:          "Grace Hopper",
		}},
		"secret_at_once": {notice.SecretRotated, notice.SecretDetails{Endpoint: ep.Endpoint, URL: ep.URL, Secret: "sec_x", By: "key_x"}},
		"key_created":    {notice.KeyCreated, notice.KeyDetails{Key: "key_x", Name: "deploy", Prefix: "phk_ab12", Scopes: []string{"events:write", "webhooks:read"}, By: "Grace Hopper"}},
		"delivery_failed": {notice.DeliveryFailed, notice.FailedDetails{
			Endpoint:    ep.Endpoint,
			URL:         ep.URL,
			Delivery:    "dlv_x",
			Event:       "evt_x",
			EventType:   "order.completed",
			Reason:      "exhausted",
			Attempts:    10,
			LastFailure: "timeout",
			FailedAt:    at,
		}},
		"suspended":       {notice.TenantSuspended, notice.HaltDetails{Reason: "Invoices are overdue", At: at}},
		"resumed":         {notice.TenantResumed, notice.HaltDetails{At: at}},
		"paused":          {notice.DispatchPaused, notice.HaltDetails{Reason: "Your receiver is overloaded", At: at}},
		"pause_ended":     {notice.DispatchResumed, notice.HaltDetails{At: at}},
		"quota_warning":   {notice.QuotaWarning, notice.QuotaDetails{Quota: "events per month", Used: 900000, Limit: 1000000, ResetsAt: &soon}},
		"quota_reached":   {notice.QuotaReached, notice.QuotaDetails{Quota: "events per month", Used: 1000000, Limit: 1000000, ResetsAt: &soon}},
		"digest_critical": {notice.Digest, digestSample()},
		"digest_all_well": {notice.Digest, notice.DigestDetails{
			Day:              "2031-03-09",
			Severity:         "ok",
			SuccessDay:       "99.9%",
			SuccessHour:      "100.0%",
			FailedDeliveries: 1,
			ActiveEndpoints:  2,
			Attempts:         12000,
			P50Milliseconds:  40,
			P95Milliseconds:  220,
		}},
	} {
		details, err := json.Marshal(n.details)
		if err != nil {
			t.Fatal(err)
		}
		l, err := emails.Notice(mail.NoticeData{
			Tenant:      "ten_01jd0000000000000000000000",
			TenantName:  "Acme",
			Kind:        string(n.kind),
			At:          at,
			Details:     details,
			Dashboard:   "https://posthorn.example/t/ten_01jd0000000000000000000000",
			Preferences: "https://posthorn.example/unsubscribe/tok",
			Unsubscribe: "https://posthorn.example/unsubscribe/tok",
		})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all[name] = l
	}
	return all
}

func digestSample() notice.DigestDetails {
	return notice.DigestDetails{
		Day:              "2031-03-09",
		Severity:         "critical",
		ActiveEndpoints:  7,
		SuccessDay:       "91.4%",
		SuccessHour:      "63.0%",
		Attempts:         48210,
		Retries:          3120,
		FailedDeliveries: 312,
		P50Milliseconds:  84,
		P95Milliseconds:  2400,
		Action:           "The endpoint is returning server errors (5xx). Check its logs around the time of a failed attempt.",
		ActionEndpoint:   "ep_01jd0000000000000000000000",
		DeadLetters:      290,
		Alerts: []notice.DigestAlert{
			{
				Endpoint: "ep_01jd0000000000000000000000",
				Name:     "Orders to the warehouse",
				Severity: "critical",
				Code:     "endpoint_disabled",
				Detail:   "Orders to the warehouse was disabled: 3,760 of 3,900 attempts failed with 503.",
				Action:   "The endpoint is returning server errors (5xx). Check its logs around the time of a failed attempt.",
			},
			{
				Endpoint: "ep_01jd0000000000000000000001",
				Name:     "Billing",
				Severity: "warning",
				Code:     "endpoint_failing",
				Detail:   "Billing: 346 of 20,100 attempts were rejected with 422.",
				Action:   "The endpoint rejects requests (4xx). Check the responses in its failed deliveries.",
			},
		},
		Findings: []notice.DigestFinding{
			{Severity: "critical", Code: "endpoint_disabled", Detail: "2 endpoints were disabled in the last 24 hours, and 1 was resumed since: Orders to the warehouse."},
			{Severity: "critical", Code: "success_hour", Detail: "63.0% of delivery attempts succeeded in the last hour (1,260 of 2,000)."},
		},
		Endpoints: []notice.DigestEndpoint{
			{Endpoint: "ep_01jd0000000000000000000000", URL: "https://hooks.acme.example/posthorn", Status: "disabled", Failed: 3800, Attempts: 3900},
			{Endpoint: "ep_01jd0000000000000000000001", Name: "Billing", URL: "https://billing.acme.example/in", Status: "active", Failed: 346, Attempts: 20100},
		},
	}
}
