package worker

import (
	"testing"
	"time"

	"posthorn/db/endpoints"
	"posthorn/domain/notice"
)

func TestTheEndOfAClientCertificateIsWarnedOfOnceAStage(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	const day = 24 * time.Hour
	now, err := h.db.ServerTime(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ends := now.Add(60 * day).Truncate(time.Second)
	tenant := h.tenant()
	ep, other, deleted := h.endpoint(tenant, "https://a.example.com/", nil), h.endpoint(tenant, "https://b.example.com/", nil), h.endpoint(tenant, "https://c.example.com/", nil)
	h.exec("UPDATE endpoints SET certificate_ends_at = $2 WHERE id = $1", ep, ends)
	h.exec("UPDATE endpoints SET certificate_ends_at = $2, deleted_at = now() WHERE id = $1", deleted, ends)
	for _, step := range []struct {
		left  time.Duration
		wants int
	}{
		{31 * day, 0}, {30 * day, 1}, {29 * day, 1}, {8 * day, 1}, {7 * day, 2}, {2 * day, 2}, {day, 3}, {time.Hour, 3}, {0, 4}, {-time.Hour, 4}, {-100 * day, 4},
	} {
		for range 2 { // however often the job runs
			if err := endpoints.WarnOfCertificates(t.Context(), h.db, ends.Add(-step.left)); err != nil {
				t.Fatal(err)
			}
		}
		if n := h.notices(ep, notice.CertificateExpiring); n != step.wants {
			t.Errorf("%s before its end: %d notices, want %d", step.left, n, step.wants)
		}
	}
	if n := h.count("SELECT count(*) FROM notices WHERE kind = 'certificate.expiring' AND (details->>'expired')::boolean"); n != 1 {
		t.Errorf("%d notices say that it has expired", n)
	}
	// The next certificate starts anew.
	h.exec("UPDATE endpoints SET certificate_ends_at = $2 WHERE id = $1", ep, ends.Add(365*day))
	if err := endpoints.WarnOfCertificates(t.Context(), h.db, ends.Add(336*day)); err != nil {
		t.Fatal(err)
	}
	if n := h.notices(ep, notice.CertificateExpiring); n != 5 {
		t.Errorf("%d notices after a renewal, want 5", n)
	}
	if n := h.notices(other, notice.CertificateExpiring) + h.notices(deleted, notice.CertificateExpiring); n != 0 {
		t.Errorf("%d notices of endpoints without a certificate", n)
	}
}
