package notice_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"posthorn/domain/event"
	"posthorn/domain/filter"
	"posthorn/domain/id"
	"posthorn/domain/notice"
)

var (
	alertTenant   = id.UUID{1}
	alertEndpoint = id.UUID{2}
	alertAt       = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
)

func alertOf(t *testing.T, k notice.Kind, about string, details any) notice.Alert {
	t.Helper()
	text, err := json.Marshal(details)
	if err != nil {
		t.Fatal(err)
	}
	p := notice.Posted{Kind: k, ID: about, Tenant: alertTenant, At: alertAt, Details: text}
	if strings.HasPrefix(string(k), "endpoint.") || k == notice.DeliveryFailed {
		p.Endpoint = &alertEndpoint
	}
	return notice.AlertOf(p, "https://posthorn.example/t/ten_1")
}

func TestEveryKindMakesAWholeAlertThatIsAskedForByName(t *testing.T) {
	t.Parallel()
	for _, k := range notice.Kinds() {
		a := alertOf(t, k, "ntc_1", struct{}{})
		if a.Title == "" || a.Message == "" || a.DedupKey == "" || a.Source == "" || a.Severity != k.Severity() ||
			!strings.HasPrefix(a.URL, "https://posthorn.example/t/ten_1/") || a.Notice != string(k) || !a.At.Equal(alertAt) {
			t.Errorf("%s: %+v", k, a)
		}
		typ := k.EventType()
		if !event.ValidType(typ) || !filter.Own(typ) || filter.MatchType([]string{"*"}, typ) ||
			!filter.MatchType([]string{notice.AlertPrefix + "*"}, typ) || !filter.MatchType([]string{typ}, typ) {
			t.Errorf("%s is not an event type that is asked for by name", typ)
		}
	}
}

func TestWhatEndsAnAlertHasTheKeyOfWhatOpenedIt(t *testing.T) {
	t.Parallel()
	for ends, opens := range map[notice.Kind][]notice.Kind{
		notice.EndpointRecovered: {notice.EndpointWarning, notice.EndpointDisabled},
		notice.TenantResumed:     {notice.TenantSuspended},
		notice.DispatchResumed:   {notice.DispatchPaused},
	} {
		end := alertOf(t, ends, "ntc_2", struct{}{})
		if end.Status != notice.Resolved {
			t.Errorf("%s is %s", ends, end.Status)
		}
		for _, k := range opens {
			if a := alertOf(t, k, "ntc_1", struct{}{}); a.Status != notice.Triggered || a.DedupKey != end.DedupKey {
				t.Errorf("%s (%s, %s) is not ended by %s (%s)", k, a.Status, a.DedupKey, ends, end.DedupKey)
			}
		}
	}
	one, two := alertOf(t, notice.DeliveryFailed, "dlv_1", struct{}{}), alertOf(t, notice.DeliveryFailed, "dlv_2", struct{}{})
	if one.DedupKey == two.DedupKey {
		t.Errorf("two failed deliveries are one alert: %s", one.DedupKey)
	}
	if d, h := alertOf(t, notice.QuotaReached, "ntc_1", struct{}{}), alertOf(t, notice.QuotaWarning, "ntc_2", struct{}{}); d.DedupKey == h.DedupKey {
		t.Error("the end of a quota is hidden by its warning")
	}
}

func TestAnAlertSaysWhatHappenedAndWhatToDo(t *testing.T) {
	t.Parallel()
	a := alertOf(t, notice.EndpointDisabled, "ntc_1", notice.EndpointDetails{
		URL:        "https://hooks.example/in",
		Reason:     "gone",
		LastStatus: 410,
		Held:       1200,
		HeldMore:   true,
		Action:     "Remove the endpoint.",
	})
	if a.Title != "An endpoint was disabled: https://hooks.example/in" {
		t.Error(a.Title)
	}
	for _, want := range []string{"410", "Held deliveries: at least 1,200", "What to do: Remove the endpoint."} {
		if !strings.Contains(a.Message, want) {
			t.Errorf("%q lacks %q", a.Message, want)
		}
	}
	failed := alertOf(t, notice.DeliveryFailed, "dlv_1", notice.FailedDetails{Delivery: "dlv_1", EventType: "order.paid", Reason: "exhausted"})
	if failed.URL != "https://posthorn.example/t/ten_1/deliveries/dlv_1" || failed.NoticeID != "" {
		t.Errorf("%+v", failed)
	}
	long := alertOf(t, notice.EndpointWarning, "ntc_1", notice.EndpointDetails{Description: strings.Repeat("é", 5000)})
	if n := len([]rune(long.Title)); n > 300 {
		t.Errorf("a title of %d characters", n)
	}
	broken := notice.AlertOf(notice.Posted{Kind: notice.QuotaReached, ID: "ntc_1", Details: json.RawMessage(`{"limit":"x"}`)}, "d")
	if broken.Title == "" || broken.Message == "" {
		t.Errorf("%+v", broken)
	}
}
