package mail_test

import (
	"testing"
	"time"

	"posthorn/domain/mail"
)

func TestAllTriesEndWithinTheProvidersMemory(t *testing.T) {
	t.Parallel()
	var total time.Duration
	tries := 0
	for {
		tries++
		d, more := mail.Next(tries, 1)
		if !more {
			break
		}
		least, _ := mail.Next(tries, 0)
		if least <= 0 || least >= d {
			t.Errorf("try %d waits from %s to %s", tries, least, d)
		}
		total += d
	}
	if tries != len(mail.Delays())+1 || total >= 24*time.Hour || total < 12*time.Hour {
		t.Errorf("%d tries in %s", tries, total)
	}
}

func TestAPauseIsBounded(t *testing.T) {
	t.Parallel()
	for asked, want := range map[time.Duration]time.Duration{
		0:                time.Second,
		-time.Hour:       time.Second,
		90 * time.Second: 90 * time.Second,
		1000 * time.Hour: time.Hour,
	} {
		if got := mail.Pause(asked); got != want {
			t.Errorf("Retry-After %s: %s, want %s", asked, got, want)
		}
	}
}

func TestWhatAProvidersAnswerMeans(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		name   string
		want   mail.Verdict
	}{
		{400, "validation_error", mail.Refused},
		{401, "missing_api_key", mail.Retry},
		{403, "invalid_api_key", mail.Retry},
		{403, "validation_error", mail.Refused},
		{404, "not_found", mail.Refused},
		{409, "invalid_idempotent_request", mail.Taken},
		{409, "concurrent_idempotent_requests", mail.Retry},
		{422, "invalid_from_address", mail.Refused},
		{429, "rate_limit_exceeded", mail.Throttled},
		{429, "daily_quota_exceeded", mail.Throttled},
		{500, "internal_server_error", mail.Retry},
		{503, "", mail.Retry},
		{0, "", mail.Retry},
	} {
		if got := mail.Classify(tt.status, tt.name); got != tt.want {
			t.Errorf("%d %s: %d, want %d", tt.status, tt.name, got, tt.want)
		}
	}
	for code, want := range map[int]mail.Verdict{
		421: mail.Retry,
		450: mail.Retry,
		452: mail.Retry,
		535: mail.Retry,
		550: mail.Refused,
		554: mail.Refused,
		0:   mail.Retry,
	} {
		if got := mail.ClassifySMTP(code); got != want {
			t.Errorf("SMTP %d: %d, want %d", code, got, want)
		}
	}
}

func TestOnlyMailsWithLinksThatOpenSomethingAreSecret(t *testing.T) {
	t.Parallel()
	secret := map[mail.Kind]bool{mail.VerifyAddress: true, mail.ResetPassword: true, mail.Invitation: true, mail.OperatorAccess: true}
	for _, k := range mail.Kinds() {
		if !k.Known() || k.Secret() != secret[k] {
			t.Errorf("%s: secret %v", k, k.Secret())
		}
	}
	if mail.Kind("junk").Known() {
		t.Error("junk is a kind")
	}
}
