package audit_test

import (
	"testing"

	"posthorn/domain/audit"
)

func TestActionsReadAsSentencesOfOneForm(t *testing.T) {
	t.Parallel()
	for action, want := range map[string]string{
		"endpoint.create":             "Endpoint created",
		"endpoint.verified":           "Endpoint verified",
		"endpoint.rotate_secret":      "Endpoint secret rotated",
		"bulk_job.start":              "Bulk job started",
		"bulk_job.continue":           "Bulk job continued",
		"delivery.share":              "Delivery shared",
		"delivery.share_open":         "Delivery link opened",
		"event_type.updated":          "Event type updated",
		"tenant.updated":              "Tenant updated",
		"view_as.began":               "View as tenant started",
		"view_as.page_viewed":         "View as tenant page viewed",
		"sign_in.succeeded":           "Signed in",
		"sign_out":                    "Signed out",
		"operator.sign_out":           "Operator signed out",
		"operator.recovery_code.used": "Operator recovery code used",
		"operator.sign_in.failed":     "Operator sign-in failed",
		"key.revoked":                 "Key revoked",
		"delivery.retry_now":          "Delivery retried now",
		"odd":                         "odd",
	} {
		if got := audit.Label(action); got != want {
			t.Errorf("%s reads %q, want %q", action, got, want)
		}
	}
}
