package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"posthorn/client"
	"posthorn/db/endpoints"
	"posthorn/domain/condition"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/mail"
	"posthorn/domain/notice"
	"posthorn/domain/pause"
	"posthorn/views/components"
	"posthorn/views/emails"
	"posthorn/worker/maintenance"
)

// counts is how many endpoints are in each condition and how many deliveries wait for each reason, by the situations:
// of the whole platform, or of the tenant that is not suspended. A listener is no endpoint. The situation of an
// ordering key has a second delivery, which is next.
func (s scene) counts(whole bool) (states map[condition.State]int, waits map[condition.Reason]int) {
	states, waits = map[condition.State]int{}, map[condition.Reason]int{}
	for _, one := range s.all {
		if !whole && one.state == condition.Suspended {
			continue
		}
		waits[one.wait]++
		if one.wait == condition.Order {
			waits[condition.Next]++
		}
		if one.wait != condition.Listener {
			states[one.state]++
		}
	}
	return states, waits
}

// metrics checks the text of /metrics: it counts every condition and every reason, those that nothing has too.
func (s scene) metrics() {
	s.t.Helper()
	registry := prometheus.NewRegistry()
	job := maintenance.New(maintenance.Config{DB: s.program.pools[0], Registry: registry})
	if err := job.Measure(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	page := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequestWithContext(s.t.Context(),
		"GET", "/metrics", nil))
	states, waits := s.counts(true)
	want := []string{}
	for _, state := range condition.States() {
		want = append(want, fmt.Sprintf("posthorn_endpoints{condition=%q} %d\n", state, states[state]))
	}
	for _, reason := range condition.Reasons() {
		want = append(want, fmt.Sprintf("posthorn_deliveries_waiting{reason=%q} %d\n", reason, waits[reason]))
	}
	for _, line := range want {
		if !strings.Contains(page.Body.String(), line) {
			s.t.Errorf("/metrics does not say %s", line)
		}
	}
}

// consoleCounts checks the numbers of the console's first page, and that nothing is late there that waits for a reason
// of its endpoint's: the test of the health summary has backdated all that does.
func (s scene) consoleCounts() {
	s.t.Helper()
	states, _ := s.counts(true)
	page := s.text("/console")
	for _, want := range []string{
		fmt.Sprintf("Breakers open %d", states[condition.Failing]),
		fmt.Sprintf("%d suspended", states[condition.Suspended]),
	} {
		if !strings.Contains(page, want) {
			s.t.Errorf("console, overview does not say %q: %.600s", want, page)
		}
	}
	due := s.read("/console")
	_, due, _ = strings.Cut(due, "Overdue deliveries")
	due, _, _ = strings.Cut(due, "</table>")
	late := s.all[slices.IndexFunc(s.all, func(one *situation) bool { return one.wait == condition.NoWorker })]
	if !strings.Contains(due, late.host) || strings.Count(due, "/console/deliveries?endpoint=") != 1 {
		s.t.Errorf("console, overview: %s has been due for the longest, and nothing of another tenant is due: %s", late.host, plainText(due))
	}
	s.hosts()
	tenants := s.all[slices.IndexFunc(s.all, func(one *situation) bool { return one.state == condition.Suspended })].tenant
	states, _ = s.counts(false)
	endpoints := 0
	for _, n := range states {
		endpoints += n
	}
	whole := s.row("/console/tenants", s.all[0].tenant)
	s.says("console, tenants", s.all[0], whole, fmt.Sprintf(" %d %d failing %d disabled", endpoints, states[condition.Failing], states[condition.Disabled]))
	if row := s.row("/console/tenants", tenants); strings.Contains(row, "disabled") || !strings.Contains(row, "suspended") {
		s.t.Errorf("console, tenants: an endpoint of the suspended tenant is suspended and not disabled: %s", row)
	}
}

// hosts checks that the state of each host equals its one endpoint's.
func (s scene) hosts() {
	s.t.Helper()
	words := map[condition.State]string{
		condition.Failing:      "down",
		condition.OnHold:       "paused",
		condition.Disabled:     "disabled",
		condition.Active:       "healthy",
		condition.Disconnected: "inactive",
		condition.Suspended:    "inactive",
		condition.Unverified:   "unverified",
		condition.Paused:       "inactive",
		condition.AskedToWait:  "healthy",
		condition.Unserved:     "healthy",
	}
	for _, one := range s.all {
		if words[one.state] == "" {
			s.t.Errorf("no word for a host whose endpoint is %s: add one", one.state)
		}
		s.says("console, hosts", one, s.row("/console/health?q="+one.host, one.host), words[one.state])
	}
}

// overview checks that a tenant's first page says what its health summary says: the number of active endpoints, and an
// alert with a link for each endpoint that fails.
func (s scene) overview() {
	s.t.Helper()
	states, _ := s.counts(false)
	root := "/t/" + s.all[0].tenant
	page := s.read(root + "/")
	if want := fmt.Sprintf("Active endpoints %d", states[condition.Active]); !strings.Contains(plainText(page), want) {
		s.t.Errorf("overview does not say %q: %.2000s", want, plainText(page))
	}
	for _, one := range s.all {
		if one.state == condition.Suspended || one.wait == condition.Listener {
			continue
		}
		told := s.alert(page, one.host)
		if told == "" && one.state != condition.Active {
			s.t.Errorf("overview does not tell of the endpoint that is %s", one.state)
		}
		alerted := one.state == condition.Failing || one.state == condition.Disabled || one.state == condition.AskedToWait
		if alerted && !strings.Contains(page, `href="`+root+"/endpoints/"+one.endpoint+`"`) {
			s.t.Errorf("overview has no link to the endpoint that is %s", one.state)
		}
		for _, a := range one.is().Actions() {
			if alerted {
				s.says("overview", one, told, a.Label())
			}
		}
	}
	late := s.all[slices.IndexFunc(s.all, func(one *situation) bool { return one.state == condition.Suspended })]
	if text := s.text("/t/" + late.tenant + "/"); !strings.Contains(text, pause.Suspended.Sentence()) || strings.Contains(text, "healthy") {
		s.t.Errorf("overview of the suspended tenant: %.600s", text)
	}
}

// alert is the part of a tenant's first page about an endpoint.
func (s scene) alert(page, host string) string {
	s.t.Helper()
	for _, part := range strings.Split(page, `class="alert`)[1:] {
		if part, _, _ = strings.Cut(part, `class="stat`); strings.Contains(part, host) {
			return plainText(part)
		}
	}
	return ""
}

// fails records a failed attempt of an endpoint of each condition, so that the daily summary names it.
func (s scene) fails() (named []*situation) {
	s.t.Helper()
	seen := map[condition.State]bool{}
	s.connect(func(ctx context.Context, c *pgx.Conn) (err error) {
		for _, one := range s.all {
			if seen[one.state] || one.wait == condition.Listener || err != nil {
				continue
			}
			seen[one.state], named = true, append(named, one)
			n := 10 // a summary names the five that fail most
			if failsLeast(one.state) {
				n = 1
			}
			_, err = c.Exec(ctx, `INSERT INTO endpoint_stats (tenant_id, endpoint_id, width, bucket, event_type, kind, n, us)
				SELECT tenant_id, endpoint_id, 60, date_trunc('minute', now()) - interval '1 minute', 'order.paid', 3 * 16, $2::int, 1000
				FROM queue WHERE delivery_id = $1`, one.uuid, n)
		}
		return err
	})
	return named
}

func failsLeast(s condition.State) bool {
	return s == condition.Active || s == condition.Unverified || s == condition.Unserved
}

// digest checks the daily summary of each tenant, as it is mailed and as the page of the notices shows it.
func (s scene) digest() {
	s.t.Helper()
	named := s.fails()
	letters := map[string]string{}
	for _, one := range named {
		if letters[one.tenant] == "" {
			letters[one.tenant] = s.letterOfDigest(one.tenant)
		}
		if failsLeast(one.state) {
			continue // five are named
		}
		line := ""
		for l := range strings.Lines(letters[one.tenant]) {
			if strings.Contains(l, one.host) && strings.Contains(l, "attempts failed (") {
				line = l
			}
		}
		s.says("digest", one, line, "("+one.state.Word()+")")
	}
	states, _ := s.counts(false)
	text := spaces.ReplaceAllString(letters[s.all[0].tenant], " ")
	if want := fmt.Sprintf("Active endpoints: %d ", states[condition.Active]); !strings.Contains(text, want) {
		s.t.Errorf("digest does not say %q: %s", want, text)
	}
}

// letterOfDigest makes a tenant's daily summary now and returns the text of its mail.
func (s scene) letterOfDigest(tenant string) string {
	s.t.Helper()
	of, err := id.Tenant.Parse(tenant)
	if err != nil {
		s.t.Fatal(err)
	}
	now := time.Now()
	posted, err := endpoints.PostDigest(s.t.Context(), s.program.pools[0], of, now)
	if err != nil || !posted {
		s.t.Fatalf("no daily summary: %v", err)
	}
	var details []byte
	s.connect(func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, "SELECT details FROM notices WHERE tenant_id = $1 AND kind = 'digest'", of.String()).Scan(&details)
	})
	return s.letter(notice.Digest, tenant, details)
}

// letter is the text of a notice's mail.
func (s scene) letter(kind notice.Kind, tenant string, details any) string {
	s.t.Helper()
	raw, is := details.([]byte)
	if !is {
		var err error
		if raw, err = json.Marshal(details); err != nil {
			s.t.Fatal(err)
		}
	}
	l, err := emails.Notice(mail.NoticeData{
		Tenant:     tenant,
		TenantName: "Acme",
		Kind:       string(kind),
		At:         time.Now(),
		Details:    raw,
		Dashboard:  "https://posthorn.example/t/" + tenant,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return l.Text()
}

// mails checks the mail about each condition: it uses the condition's word, and names and links the endpoint.
func (s scene) mails() {
	s.t.Helper()
	until := time.Now().Add(time.Hour)
	for _, one := range s.all {
		if one.state == condition.AskedToWait || one.state == condition.Unserved || one.state == condition.Disconnected {
			continue // the daily summary alone tells of it
		}
		held := notice.HeldDetails{
			Endpoint:  one.endpoint,
			URL:       "https://" + one.host + "/",
			Status:    string(one.state),
			Held:      1,
			ExpiresAt: until,
		}
		e := notice.EndpointDetails{
			Endpoint:   one.endpoint,
			URL:        held.URL,
			Reason:     string(health.Auth),
			AuthStreak: 9,
			LastStatus: 401,
			DisableAt:  &until,
		}
		tells, known := map[condition.State]struct {
			kind    notice.Kind
			details any
			word    string
		}{
			condition.Suspended:  {notice.TenantSuspended, notice.HaltDetails{At: until}, "suspended"},
			condition.OnHold:     {notice.DispatchPaused, notice.HaltDetails{At: until}, "paused"},
			condition.Disabled:   {notice.EndpointDisabled, e, "disabled"},
			condition.Failing:    {notice.EndpointWarning, e, "fail"},
			condition.Unverified: {notice.HeldExpiring, held, "unverified"},
			condition.Paused:     {notice.HeldExpiring, held, "paused"},
			condition.Active:     {notice.EndpointRecovered, e, "recovered"},
		}[one.state]
		if !known {
			s.t.Errorf("no mail tells of an endpoint that is %s: add it", one.state)
			continue
		}
		text := s.letter(tells.kind, one.tenant, tells.details)
		s.says("mail "+string(tells.kind), one, text, tells.word)
		if _, whole := tells.details.(notice.HaltDetails); !whole {
			s.says("mail "+string(tells.kind), one, text, one.host)
			s.says("mail "+string(tells.kind), one, text, "/t/"+one.tenant+"/endpoints/"+one.endpoint)
		}
	}
}

// statusPage checks that the public page is not degraded by what waits for reasons of endpoints.
func (s scene) statusPage() {
	s.t.Helper()
	text := s.text("/status")
	for _, word := range []string{"Degraded", "Outage"} {
		if strings.Contains(text, word+" ") {
			s.t.Errorf("the status page says %s: %.1000s", word, text)
		}
	}
}

// The words of pages, mails and metrics are unique: no two conditions, and no two reasons, look the same to who reads
// them.
func TestNoTwoConditionsOrReasonsShareTheirWords(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	note := func(what, text, of string) {
		if other, twice := seen[what+text]; twice {
			t.Errorf("%s %s and %s is %q", what, of, other, text)
		}
		seen[what+text] = of
	}
	for _, state := range condition.States() {
		note("the word for the condition", state.Word(), string(state))
		note("the title of the condition", condition.Condition{State: state}.Title(), string(state))
		if components.ConditionTone(state) == components.Good && state != condition.Active {
			t.Errorf("%s looks good", state)
		}
		if !client.EndpointState(state).Valid() {
			t.Errorf("the API does not know the condition %s", state)
		}
	}
	for _, reason := range condition.Reasons() {
		note("the word for the reason", reason.Word(), string(reason))
		note("the title of the reason", condition.Wait{Reason: reason}.Title(), string(reason))
		if !client.WaitReason(reason).Valid() {
			t.Errorf("the API does not know the reason %s", reason)
		}
	}
}
