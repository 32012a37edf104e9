package incidents

import (
	"strings"
	"testing"
	"time"

	"posthorn/domain/home"
	"posthorn/domain/id"
	"posthorn/domain/notice"
	"posthorn/domain/words"
)

// everything is a platform where all that can be found is wrong.
func everything() Facts {
	return Facts{
		WorkersLost:   1,
		Discrepancies: 3,
		Proxies:       []string{"p1:3128", "p2:3128"},
		Late:          []Waiting{{"Acme", time.Hour}},
		Hosts:         []Host{{Name: "well", Tenants: 3, Active: 3}, {Name: "down", Tenants: 2, Active: 4, BreakersOpen: 4}},
		Moves:         []home.Move{{Tenant: "ten_2", Name: "Initech", Home: "eu2"}},
		Loads:         []Load{{Tenant: "Umbrella"}, {Tenant: "Acme", ID: "ten_1", Queue: 1, Ready: 9999}},
		Rejected:      1,
		Mails:         2,
	}
}

func TestEachFindingIsAnAlertOfItsCause(t *testing.T) {
	t.Parallel()
	f := everything()
	got := map[Kind][]string{}
	for _, a := range AlertsOf(f, Find(f, words.Count[int64])) {
		got[a.Kind] = append(got[a.Kind], a.Key)
		if a.Title == "" || a.Message == "" || !strings.HasPrefix(a.Link("https://c"), "https://c/console/") {
			t.Errorf("%+v", a)
		}
	}
	want := map[Kind]string{
		Discrepancy: "", ProxyFails: "p1:3128,p2:3128", MoveStopped: "ten_2", WorkerLost: "", DownHost: "down", Noisy: "ten_1", Rejected: "", Mails: "",
	}
	for k, keys := range want {
		if list, ok := got[k]; !ok || strings.Join(list, ",") != keys {
			t.Errorf("%s: %q, want %q", k, list, keys)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%v: without a worker nothing tells, and overdue deliveries are told by tenant", got)
	}
	if all := AlertsOf(Facts{Workers: 1}, Find(Facts{Workers: 1}, words.Count[int64])); len(all) != 0 {
		t.Errorf("all is well: %v", all)
	}
}

func TestEveryKindOfAlertIsWhole(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, k := range AlertKinds() {
		if k.Label() == "" || seen[k.Label()] || !k.Alerts() || k.Severity() == "" || !strings.HasPrefix(k.EventType(), "posthorn.platform.") {
			t.Errorf("%+v", k.rule())
		}
		seen[k.Label()] = true
	}
	if NoWorker.Alerts() || Kind("junk").Alerts() {
		t.Error("what can't be told is an alert")
	}
}

func TestAnAlertEndsWhenItsCauseWasAbsentForLongEnough(t *testing.T) {
	t.Parallel()
	now := time.Date(2031, 3, 9, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		kind   Kind
		absent time.Duration
		over   bool
	}{
		{DownHost, 0, false},
		{DownHost, 5 * time.Minute, false},
		{DownHost, 5*time.Minute + time.Second, true},
		{LateTenant, 10 * time.Minute, false},
		{LateTenant, 12 * time.Minute, true},
		{Disabled, 0, false},
		{Disabled, time.Second, true},
	} {
		if k := (Kept{Alert: Alert{Kind: tt.kind}, SeenAt: now.Add(-tt.absent)}); k.Over(now) != tt.over {
			t.Errorf("%s, absent for %s: %v", tt.kind, tt.absent, k.Over(now))
		}
	}
}

func TestTheStartAndTheEndOfAnAlertHaveOneKey(t *testing.T) {
	t.Parallel()
	at := time.Date(2031, 3, 9, 12, 0, 0, 0, time.UTC)
	k := Kept{
		ID:       id.New(at, [10]byte{1}),
		Alert:    Alert{Kind: Disabled, Key: "ep_1", Title: "Down", Message: "Facts", Page: "/console/x", Tenant: "ten_1", Endpoint: "ep_1"},
		OpenedAt: at,
	}
	opens := k.Data("https://ops")
	k.EndedAt = at.Add(time.Hour)
	ends := k.Data("https://ops")
	if opens.DedupKey == "" || opens.DedupKey != ends.DedupKey || opens.Status != notice.Triggered || ends.Status != notice.Resolved ||
		!ends.At.Equal(k.EndedAt) || opens.Source != "ep_1" || opens.URL != "https://ops/console/x" || ends.Title != "Resolved: Down" {
		t.Errorf("%+v\n%+v", opens, ends)
	}
	k.ID = id.New(at, [10]byte{2})
	if k.Data("").DedupKey == opens.DedupKey {
		t.Error("the next alert of a cause is another one")
	}
}
