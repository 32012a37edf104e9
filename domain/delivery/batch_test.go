package delivery_test

import (
	"testing"

	"posthorn/domain/delivery"
	"posthorn/domain/retry"
)

// TestEachAttemptHalvesTheBatchesOfAnEvent: down to one.
func TestEachAttemptHalvesTheBatchesOfAnEvent(t *testing.T) {
	t.Parallel()
	for attempts, want := range []int{100, 50, 25, 12, 6, 3, 1, 1} {
		if got := delivery.BatchLimit(100, attempts); got != want {
			t.Errorf("after %d attempts %d events are sent together, not %d", attempts, got, want)
		}
	}
	if got := delivery.BatchLimit(1000, 1<<20); got != 1 {
		t.Error(got)
	}
}

// TestAResponseToSeveralEventsSettlesNoneThatItIsPossiblyNotAbout: what names the endpoint's own state is decided as
// for one event; another client error repeats them in smaller batches.
func TestAResponseToSeveralEventsSettlesNoneThatItIsPossiblyNotAbout(t *testing.T) {
	t.Parallel()
	standard, _ := retry.Named(retry.Default)
	p := delivery.Policy{Schedule: standard}
	for status := 100; status < 600; status++ {
		r := delivery.Result{Status: status}
		alone, together := delivery.Decide(p, 1, r, 0.5), delivery.DecideInBatch(p, 1, 2, r, 0.5)
		switch status {
		case 401, 403, 404, 408, 410, 425, 429:
			if alone != together {
				t.Errorf("%d: %+v, and together %+v", status, alone, together)
			}
			continue
		}
		if status/100 == 4 != together.Repeat {
			t.Errorf("%d: %+v", status, together)
		}
		if delivery.DecideInBatch(p, 1, 1, r, 0.5) != alone {
			t.Errorf("%d: an event that is alone in its batch is decided differently", status)
		}
	}
	p.AcceptConflict = true
	if d := delivery.DecideInBatch(p, 1, 2, delivery.Result{Status: 409}, 0); d.Status != delivery.Delivered {
		t.Errorf("a conflict that counts as delivered: %+v", d)
	}
}

// TestResultsAreReadOrRefused: nothing that can be misread decides about an event.
func TestResultsAreReadOrRefused(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]int{
		`{"results": []}`: 0,
		`{"results": [{"id": "evt_1", "status": 500}, {"id": "evt_2", "status": 200, "error": "x"}], "more": 1}`: 2,
		``: -1, `[]`: -1, `{}`: -1, `{"results": null}`: -1, `{"results": {}}`: -1, `{"results": [{"id": "evt_1"}]}`: -1,
		`{"results": [{"status": 500}]}`: -1, `{"results": [{"id": "evt_1", "status": 207}]}`: -1, `{"results": [{"id": "evt_1", "status": "500"}]}`: -1,
		`{"results": [{"id": "evt_1", "status": 99}]}`: -1, `{"results": [{"id": "evt_1", "status": 500}`: -1,
	} {
		results, err := delivery.ReadResults([]byte(body))
		if err != nil != (want < 0) || err == nil && len(results) != want {
			t.Errorf("%s: %v, %v", body, results, err)
		}
	}
}
