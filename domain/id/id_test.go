package id

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTextFormRoundTripsAndKeepsOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) (u UUID) {
			copy(u[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, name))
			return u
		}
		a, b := draw("a"), draw("b")
		sa, sb := Event.Format(a), Event.Format(b)
		if back, err := Event.Parse(sa); err != nil || back != a {
			t.Fatalf("Parse(%q) = %v, %v; want %v", sa, back, err, a)
		}
		if (a.String() < b.String()) != (sa < sb) {
			t.Fatalf("order of %s and %s is not the order of %s and %s", a, b, sa, sb)
		}
	})
}

func TestIdCarriesItsCreationTime(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 4, 5, 6, 789e6, time.UTC)
	u := New(at, [10]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	if !u.Time().Equal(at) {
		t.Fatalf("Time() = %v, want %v", u.Time(), at)
	}
	if got := u.String()[14]; got != '7' {
		t.Fatalf("version digit %c in %s, want 7", got, u)
	}
}

func TestIDsWithinAnotherHaveItsMomentAndAnOrder(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 4, 5, 6, 789e6, time.UTC)
	event := New(at, [10]byte{0xab, 0xcd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	var last UUID
	for n := range 0x3fff {
		u := event.Within(n, [6]byte{byte(-n)})
		text := u.String()
		if !u.Time().Equal(at) || text[:18] != event.String()[:18] || text[19] < '8' || text[19] > 'b' {
			t.Fatalf("the %d. within %s is %s", n, event, u)
		}
		if text <= last.String() {
			t.Fatalf("%s comes after %s", u, last)
		}
		last = u
	}
	if u := event.Within(100_000, [6]byte{1}); !u.Time().Equal(at) || u.String() < last.String() {
		t.Errorf("beyond what is counted: %s", u)
	}
}

func TestParseRefusesEverythingButTheCanonicalText(t *testing.T) {
	t.Parallel()
	good := Event.Format(New(time.UnixMilli(1), [10]byte{}))
	for _, s := range []string{
		"", "evt_", good[:len(good)-1], good + "0", "dlv" + good[3:], "EVT" + good[3:], "evt-" + good[4:],
		good[:29] + "U", "evt_8" + good[5:], " " + good[1:], "evt_zzzzzzzzzzzzzzzzzzzzzzzzzz",
	} {
		if _, err := Event.Parse(s); err == nil {
			t.Errorf("Parse(%q) accepted", s)
		}
	}
}

func TestTheFirstIDOfAMomentDividesIDs(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, int(5*time.Millisecond), time.UTC)
	before, of := New(at.Add(-time.Millisecond), [10]byte{0xff, 0xff}), New(at, [10]byte{})
	for _, moment := range []time.Time{at, at.Add(-time.Microsecond)} {
		if first := FirstAt(moment); first.Compare(before) <= 0 || first.Compare(of) > 0 || first.Time() != at {
			t.Errorf("%s: %s", moment, first)
		}
	}
	if first := FirstAt(time.Time{}); !first.IsZero() {
		t.Errorf("before all ids: %s", first)
	}
}
