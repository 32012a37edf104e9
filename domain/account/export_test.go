package account_test

import (
	"testing"
	"time"

	"posthorn/domain/account"
)

func TestAnExportIsCurrentForADay(t *testing.T) {
	t.Parallel()
	now := time.Date(2031, 3, 30, 12, 0, 0, 0, time.UTC)
	if account.ExportIsCurrent(nil, now) {
		t.Error("no export is current")
	}
	for age, want := range map[time.Duration]bool{
		0:                              true,
		time.Hour:                      true,
		24*time.Hour - time.Nanosecond: true,
		24 * time.Hour:                 false,
		48 * time.Hour:                 false,
		-time.Nanosecond:               false,
		-time.Hour:                     false,
	} {
		if sent := now.Add(-age); account.ExportIsCurrent(&sent, now) != want {
			t.Errorf("one of %s ago: %t", age, !want)
		}
	}
}
