package maintenance

import (
	"testing"
	"time"
)

func TestAFoldTakesAsManyEntriesAsItCanInItsTime(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		most int32
		took time.Duration
		want int32
	}{
		{500, 15 * time.Millisecond, 250},
		{250, 8 * time.Millisecond, 250},
		{250, 11 * time.Millisecond, 125},
		{125, time.Second, 125}, // a ledger that is never folded would be read whole by every page
		{250, 4 * time.Millisecond, 500},
		{500, time.Millisecond, 500},
	} {
		if got := nextFold(tt.most, tt.took); got != tt.want {
			t.Errorf("after %d entries in %v: %d, want %d", tt.most, tt.took, got, tt.want)
		}
	}
}
