package incidents

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestIncidentsAreListedTheWorstFirst(t *testing.T) {
	t.Parallel()
	well := Facts{
		Workers: 2,
		Late:    []Waiting{{"Acme", 2 * time.Second}},
		Hosts: []Host{
			{Name: "a.example.com", Endpoints: 1, Tenants: 1, Active: 1, BreakersOpen: 1, Failing: 1},
			{Name: "b.example.com", Endpoints: 9, Tenants: 9, Active: 9, Failing: 9},
		},
		Loads: []Load{{Tenant: "Acme", Slots: 0.9, Queue: 0.9, Ready: 12}, {Tenant: "Umbrella", Slots: 0.1, Ready: 5000}},
	}
	for name, tt := range map[string]struct {
		with func(f *Facts)
		want []string
	}{
		"all is well":                 {func(*Facts) {}, nil},
		"no worker":                   {func(f *Facts) { f.Workers = 0 }, []string{"No worker is running"}},
		"a dead worker":               {func(f *Facts) { f.WorkersLost = 1 }, []string{"1 worker stopped"}},
		"a dead worker, and no other": {func(f *Facts) { f.Workers, f.WorkersLost = 0, 1 }, []string{"No worker is running", "1 worker stopped"}},
		"one is late":                 {func(f *Facts) { f.Late[0].For = 6 * time.Minute }, []string{"Deliveries of Acme are overdue: the oldest has been due for 6 minutes."}},
		"many are late": {func(f *Facts) {
			f.Late = []Waiting{{"Acme", 3 * time.Hour}, {"Umbrella", time.Hour}, {"Initech", time.Second}}
		}, []string{"Deliveries of Acme and of 1 other tenant are overdue: the oldest has been due for 3 hours."}},
		"a host is down for many":    {func(f *Facts) { f.Hosts[0].Tenants, f.Hosts[0].Active, f.Hosts[0].BreakersOpen = 7, 7, 7 }, []string{"a.example.com: down for 7 tenants."}},
		"one crowds out the others":  {func(f *Facts) { f.Loads[0].Ready = 40000 }, []string{"Acme has 90% of the workers' slots, and 40000 deliveries ready to send, 90% of all."}},
		"most of next to nothing":    {func(f *Facts) { f.Loads[0] = Load{Tenant: "Acme", Slots: 0.3 / 1024, Queue: 0.2, Ready: 40000} }, nil},
		"there are no others":        {func(f *Facts) { f.Loads[0].Ready, f.Loads[0].Alone = 40000, true }, nil},
		"a backlog of slow requests": {func(f *Facts) { f.Loads[0] = Load{Tenant: "Acme", Queue: 0.75, Ready: 3000} }, []string{"Acme has 3000 deliveries ready to send, 75% of all."}},
		"what people wait for":       {func(f *Facts) { f.Rejected, f.Mails = 1, 2 }, []string{"1 event that was emitted in SQL was rejected.", "2 emails failed permanently."}},
		"everything at once": {func(f *Facts) {
			*f = Facts{
				WorkersLost:   2,
				Discrepancies: 3,
				Late:          []Waiting{{"Acme", time.Hour}},
				Hosts:         []Host{{Name: "a", Tenants: 2, Active: 4, BreakersOpen: 3, Response: "503"}},
				Loads:         []Load{{Tenant: "Acme", Queue: 1, Ready: 9999}},
			}
		}, []string{"No worker is running", "The books differ", "Deliveries of Acme", "2 workers stopped", "a: 3 of 4 failing, 503 for 2 tenants", "Acme has"}},
	} {
		f := well
		f.Late, f.Hosts, f.Loads = append([]Waiting{}, well.Late...), append([]Host{}, well.Hosts...), append([]Load{}, well.Loads...)
		tt.with(&f)
		got := Find(f, func(n int64, one, many string) string {
			if n == 1 {
				return "1 " + one
			}
			return strconv.FormatInt(n, 10) + " " + many
		})
		if len(got) != len(tt.want) {
			t.Errorf("%s: %v", name, got)
			continue
		}
		for i, w := range tt.want {
			if !strings.HasPrefix(got[i].Title, w) || got[i].Action == "" {
				t.Errorf("%s: %q, want %q", name, got[i].Title, w)
			}
			if i > 0 && got[i].Severity > got[i-1].Severity {
				t.Errorf("%s: %q comes after what is less bad", name, got[i].Title)
			}
		}
	}
}

func TestAHostsStateFollowsFromItsActiveEndpoints(t *testing.T) {
	t.Parallel()
	for want, hosts := range map[HostState][]Host{
		HostDown: {{Endpoints: 3, Active: 2, Disabled: 1, BreakersOpen: 2, Failing: 2}, {
			Endpoints:    1,
			Active:       1,
			BreakersOpen: 1,
		}},
		HostPartly:  {{Endpoints: 100, Active: 100, BreakersOpen: 3, Failing: 5}},
		HostFailing: {{Endpoints: 2, Active: 2, Failing: 1}},
		HostPaused:  {{Endpoints: 2, Paused: 2}, {Endpoints: 3, Paused: 1, Disabled: 2}},
		HostOff:     {{Endpoints: 2, Disabled: 2}, {Endpoints: 2, Disabled: 1, Failing: 1}},
		HostWell:    {{Endpoints: 100, Active: 99, Disabled: 1}, {Endpoints: 1, Active: 1}},
		HostNew:     {{Endpoints: 10, Unverified: 10}, {Endpoints: 2, Unverified: 1}},
		HostIdle:    {{Endpoints: 1}},
	} {
		for _, h := range hosts {
			if got := h.State(); got != want {
				t.Errorf("%+v is %s, want %s", h, got, want)
			}
		}
	}
}

func TestAHostThatFailsSaysHowManyOfItsEndpointsDo(t *testing.T) {
	t.Parallel()
	for want, h := range map[string]Host{
		"25 of 25 failing, 503": {Endpoints: 25, Active: 25, Failing: 25, BreakersOpen: 2, Response: "503"},
		"1 of 2 failing":        {Endpoints: 2, Active: 2, Failing: 1},
		"down":                  {Endpoints: 2, Active: 2, Failing: 2, BreakersOpen: 2, Response: "503"},
		"unverified":            {Endpoints: 2, Unverified: 2},
		"healthy":               {Endpoints: 2, Active: 2},
	} {
		if got := h.Words(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
