package endpoint_test

import (
	"testing"
	"time"

	"posthorn/domain/endpoint"
)

func TestTheEndOfACertificateIsWarnedOfInStages(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	ends := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	for left, want := range map[time.Duration]time.Duration{
		400 * day:  -1,
		30*day + 1: -1,
		30 * day:   30 * day,
		7*day + 1:  30 * day,
		7 * day:    7 * day,
		day + 1:    7 * day,
		day:        day,
		1:          day,
		0:          0,
		-400 * day: 0,
	} {
		stage, warn := endpoint.CertificateStage(ends, ends.Add(-left))
		if warn != (want >= 0) || warn && stage != want {
			t.Errorf("%s before its end: %s, %v", left, stage, warn)
		}
	}
}
