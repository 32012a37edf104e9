package main

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"posthorn/web/cli"
)

// The command line lists only dead letters, sends none of them twice without --again, and says what it was given.
func TestTheCommandLineReplaysADeadLetterOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var status atomic.Int32
	status.Store(http.StatusUnprocessableEntity)
	to := echo(t, func() int { return int(status.Load()) })
	var endpoint, event thing
	d.ok(&endpoint, "endpoints create --json "+to.URL)
	d.ok(&event, "emit order.completed --json {}")
	d.ok(nil, "emit order.completed {}")
	dead := func() (list []thing) {
		d.ok(&list, "dlq list --json")
		return list
	}
	eventually(t, "there are two dead letters", func() bool { return len(dead()) == 2 })
	status.Store(http.StatusOK)
	if text := d.ok(nil, "endpoints recover --since 1h --dry-run "+endpoint.ID); text != "2 failed deliveries would be sent.\n" {
		t.Errorf("what a recovery would do: %s", text)
	}
	if text := d.ok(nil, "endpoints replay-missing --since 1h --dry-run "+endpoint.ID); text != "0 missing events would be sent.\n" {
		t.Errorf("what a replay of missing events would do: %s", text)
	}

	if text := d.ok(nil, "dlq replay "+event.ID); !strings.Contains(text, "is sent again as dlv_") {
		t.Errorf("an event's dead letter: %s", text)
	}
	left := dead()
	if len(left) != 1 {
		t.Fatalf("after the replay of one of two: %+v", left)
	}
	d.ok(nil, "dlq replay "+left[0].ID)
	if list := dead(); len(list) != 0 {
		t.Errorf("after the replay of both: %+v", list)
	}
	for line, want := range map[string]struct {
		code int
		said string
	}{
		"dlq replay " + left[0].ID:        {cli.ExitFailed, "was replayed before"},
		"deliveries replay " + left[0].ID: {cli.ExitFailed, "--again replays it once more"},
		"dlq replay " + event.ID:          {cli.ExitNotFound, "has no dead letters"},
		"dlq replay " + endpoint.ID:       {cli.ExitUsage, "is the id of an endpoint"},
		"deliveries get " + event.ID:      {cli.ExitUsage, "is the id of an event"},
	} {
		if r := d.run(line); r.code != want.code || strings.Count(r.stderr, want.said) != 1 {
			t.Errorf("posthorn %s: exit code %d, %s%s; want %d and %q", line, r.code, r.stdout, r.stderr, want.code, want.said)
		}
	}
	if text := d.ok(nil, "deliveries get "+left[0].ID); !strings.Contains(text, "Replayed by") {
		t.Errorf("it does not name its replay: %s", text)
	}
	var again thing
	d.ok(&again, "dlq replay --json --again "+left[0].ID)
	if text := d.ok(nil, "endpoints recover --since 1h --wait 30s "+endpoint.ID); !strings.Contains(text, "done") {
		t.Errorf("a recovery: %s", text)
	}
	if again.ReplayOf != left[0].ID {
		t.Errorf("replayed again: %+v", again)
	}
}
