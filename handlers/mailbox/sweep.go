package mailbox

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"

	"posthorn/db/endpoints"
	"posthorn/db/sql"
	"posthorn/domain/fault"
	"posthorn/handlers"
)

var errCron = fault.New(fault.Unauthenticated, "cron_secret_wrong", "Send the value of POSTHORN_CRON_SECRET as Authorization: Bearer.")

// sweep makes the hourly sweeps due now: some worker makes them within seconds. Asking often does no harm: a tenant gets one
// digest a day, however often somebody asks.
func (a *mailbox) sweep(c *handlers.Call) error {
	scheme, given, _ := strings.Cut(c.Request.Header.Get("Authorization"), " ")
	// Hashed first, so that not even the length shows in the time that it takes.
	got, want := sha256.Sum256([]byte(strings.TrimSpace(given))), sha256.Sum256([]byte(a.CronSecret))
	if subtle.ConstantTimeCompare(got[:], want[:]) != 1 || !strings.EqualFold(scheme, "bearer") {
		return errCron
	}
	if err := c.NoBody(); err != nil {
		return err
	}
	sweeps := []string{endpoints.SweepDigests, endpoints.SweepOverdue}
	if err := a.DB.Console(c.Ctx(), func(q *sql.Queries) error {
		_, err := q.RecallChores(c.Ctx(), sweeps)
		return err
	}); err != nil {
		return err
	}
	return c.Answer(http.StatusAccepted, map[string][]string{"sweeps": sweeps})
}
