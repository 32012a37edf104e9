package bulk

import (
	"slices"
	"testing"
	"time"

	"posthorn/domain/delivery"
)

func TestEachActionTakesTheStatesThatOneDeliveryTakesItIn(t *testing.T) {
	t.Parallel()
	for s := delivery.Pending; s <= delivery.Held; s++ {
		for _, c := range []struct {
			name string
			skip Skip
			may  bool
		}{
			{"replay", SkipReplay(s), delivery.CanReplay(s)},
			{"retry", SkipRetry(s), delivery.CanRetryNow(s)},
			{"cancel", SkipCancel(s), delivery.CanCancel(s)},
			{"archive", SkipArchive(s, false, true), delivery.CanArchive(s)},
			{"unarchive", SkipArchive(s, true, false), delivery.CanArchive(s)},
		} {
			if (c.skip == SkipNone) != c.may {
				t.Errorf("%s of a %s delivery: skipped %q, one by one it may: %v", c.name, s, c.skip, c.may)
			}
		}
	}
	if SkipRetry(delivery.Held) != SkipHeld || SkipArchive(delivery.Failed, true, true) != SkipAlready {
		t.Error("the reasons are mixed up")
	}
}

func TestAFilterSaysWhichDeliveriesAreMeant(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	later := now.Add(time.Second)
	for _, c := range []struct {
		kind   Kind
		filter Filter
		codes  []string
	}{
		{Replay, Filter{Status: "failed"}, nil},
		{Replay, Filter{Status: "all_failed", Since: &now, Until: &later}, nil},
		{Replay, Filter{}, []string{"filter_status"}},
		{Replay, Filter{Status: "held"}, []string{"filter_status"}},
		{Replay, Filter{Status: "failed", Since: &now, Until: &now}, []string{"filter_times"}},
		{Replay, Filter{Status: "x", Since: &later, Until: &now}, []string{"filter_status", "filter_times"}},
		{Replay, Filter{IDs: []string{"a"}}, nil},
		{Replay, Filter{IDs: []string{"a"}, Until: &now}, []string{"filter_ids_alone"}},
		{RetryNow, Filter{Status: "retrying"}, nil},
		{RetryNow, Filter{Status: "all_failed"}, []string{"filter_status"}},
		{Cancel, Filter{Status: "held"}, nil},
		{Cancel, Filter{Status: "failed"}, []string{"filter_status"}},
		{Unarchive, Filter{Status: "canceled"}, nil},
	} {
		var codes []string
		for _, f := range c.filter.Faults(c.kind) {
			codes = append(codes, f.Code)
		}
		if !slices.Equal(codes, c.codes) {
			t.Errorf("%s of %+v: %q, want %q", c.kind, c.filter, codes, c.codes)
		}
	}
}

func TestASlowJobGoesEvenly(t *testing.T) {
	t.Parallel()
	for pace, want := range map[int]int{0: Chunk, 1: 1, 100: 100, Chunk: Chunk, MaxPace: Chunk} {
		if got := ChunkAt(pace); got != want {
			t.Errorf("a chunk at %d a second has %d rows, want %d", pace, got, want)
		}
	}
}

func TestAJobThatIsOverStaysOver(t *testing.T) {
	t.Parallel()
	for state, over := range map[State]bool{Queued: false, Running: false, Done: true, Canceled: true, Failed: true} {
		if state.Over() != over {
			t.Errorf("%s is over: %v", state, state.Over())
		}
	}
}
