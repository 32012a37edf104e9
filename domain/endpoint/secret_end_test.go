package endpoint_test

import (
	"testing"
	"time"

	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/signature"
)

func TestASecretEndsBeforeASuccessorThatWasAccepted(t *testing.T) {
	t.Parallel()
	a, b, c := id.UUID{15: 1}, id.UUID{15: 2}, id.UUID{15: 3} // c is the newest
	live := func(accepted ...id.UUID) []endpoint.LiveSecret {
		all := []endpoint.LiveSecret{{ID: c}, {ID: b}, {ID: a}}
		for i := range all {
			for _, one := range accepted {
				all[i].Accepted = all[i].Accepted || all[i].ID == one
			}
		}
		return all
	}
	all, one := good(), good()
	one.Format = signature.Raw
	for _, tt := range []struct {
		name   string
		s      endpoint.Settings
		live   []endpoint.LiveSecret
		ended  id.UUID
		chosen *id.UUID
		next   id.UUID
		code   string
	}{
		{"the last", all, live()[2:], a, nil, id.UUID{}, "secret_last"},
		{"all sign, none was checked", all, live(), a, nil, c, "secret_unchecked"},
		{"all sign, the newest was accepted", all, live(c), a, nil, c, ""},
		{"all sign, another one was accepted", all, live(b), a, nil, b, ""},
		{"all sign, only the ended one was accepted", all, live(a), a, nil, c, "secret_unchecked"},
		{"one signs after it: the chosen one", one, live(c), a, &b, b, "secret_unchecked"},
		{"one signs after it, and was accepted", one, live(b), a, &b, b, ""},
		{"the chosen one ends: the newest signs", one, live(c), b, &b, c, ""},
		{"the newest ends", one, live(b), c, &c, b, ""},
	} {
		next, there := endpoint.Successor(tt.s, tt.live, tt.ended, tt.chosen)
		if next.ID != tt.next || there == next.ID.IsZero() {
			t.Errorf("%s: %v follows, want %v", tt.name, next.ID, tt.next)
		}
		code := ""
		if f := fault.As(endpoint.CheckEnd(next, there, false)); f != nil {
			code = f.Code
		}
		if code != tt.code {
			t.Errorf("%s: %q, want %q", tt.name, code, tt.code)
		}
		if err := endpoint.CheckEnd(next, there, true); (err == nil) != there {
			t.Errorf("%s, unchecked: %v", tt.name, err)
		}
	}
}

func TestAPauseEndsInTheFuture(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name  string
		from  endpoint.Status
		until time.Time
		good  bool
	}{
		{"without an end", endpoint.Active, time.Time{}, true},
		{"in an hour", endpoint.Active, now.Add(time.Hour), true},
		{"another end", endpoint.Paused, now.Add(time.Hour), true},
		{"in the past", endpoint.Active, now, false},
		{"in 31 days", endpoint.Active, now.Add(31 * 24 * time.Hour), false},
		{"not verified", endpoint.Unverified, now.Add(time.Hour), false},
		{"disabled", endpoint.Disabled, now.Add(time.Hour), false},
	} {
		change, err := endpoint.PauseUntil(tt.until, now)(tt.from)
		if (err == nil) != tt.good || tt.good && (change.To != endpoint.Paused || !change.ResumeAt.Equal(tt.until)) {
			t.Errorf("%s: %+v, %v", tt.name, change, err)
		}
	}
}
