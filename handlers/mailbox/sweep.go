package mailbox

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"posthorn/db/endpoints"
	"posthorn/domain/fault"
	"posthorn/handlers"
)

var errCron = fault.New(fault.Unauthenticated, "cron_secret_wrong", "Send the value of POSTHORN_CRON_SECRET as Authorization: Bearer.")

// sweep makes the hourly sweeps due now. Some worker runs them within seconds. Frequent requests do no harm: a tenant
// gets at most one digest a day.
func (a *mailbox) sweep(c *handlers.Call) error {
	scheme, given, _ := strings.Cut(c.Request.Header.Get("Authorization"), " ")
	// Hashed first, so that not even the length shows in the duration.
	got, want := sha256.Sum256([]byte(strings.TrimSpace(given))), sha256.Sum256([]byte(a.CronSecret))
	if subtle.ConstantTimeCompare(got[:], want[:]) != 1 || !strings.EqualFold(scheme, "bearer") {
		return errCron
	}
	if err := c.NoBody(); err != nil {
		return err
	}
	sweeps, err := endpoints.RequestSweeps(c.Ctx(), a.DB)
	if err != nil {
		return err
	}
	return c.Answer(http.StatusAccepted, map[string][]string{"sweeps": sweeps})
}
