package notice_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"posthorn/domain/access"
	"posthorn/domain/fault"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/notice"
)

func TestWhoGetsAMailOfAKind(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for _, tt := range []struct {
		kind   notice.Kind
		role   access.Role
		chosen *bool
		want   bool
	}{
		{notice.EndpointDisabled, access.Viewer, nil, true},
		{notice.EndpointDisabled, access.Viewer, &no, false},
		{notice.DeliveryFailed, access.Owner, nil, false}, // off until asked for
		{notice.DeliveryFailed, access.Owner, &yes, true},
		{notice.KeyCreated, access.Viewer, &yes, false}, // the role does not see it, whatever they chose
		{notice.KeyCreated, access.Developer, nil, true},
		{"junk", access.Owner, &yes, false},
		{notice.Digest, "", &yes, false},
	} {
		if got := tt.kind.Wants(tt.role, tt.chosen); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

func TestASubscriptionReadsAsItWasWritten(t *testing.T) {
	t.Parallel()
	s := notice.Subscription{
		Tenant:    id.New(time.Date(2031, 3, 9, 0, 0, 0, 0, time.UTC), [10]byte{1}),
		Recipient: notice.AddressRecipient(" Ada@Acme.example "),
		Kind:      notice.Digest,
	}
	got, ok := notice.ParseSubscription(s.Encode())
	if !ok || got != s || got.Recipient != "ada@acme.example" {
		t.Errorf("%+v, %v", got, ok)
	}
	for _, junk := range []string{"", "{}", `{"t":"ten_x","r":"a","k":"digest"}`, `[]`} {
		if _, ok := notice.ParseSubscription([]byte(junk)); ok {
			t.Errorf("%s is a subscription", junk)
		}
	}
	s.Kind = "junk"
	if _, ok := notice.ParseSubscription(s.Encode()); ok {
		t.Error("a subscription to no kind")
	}
}

func TestSettingsThatCannotBeReadAreNone(t *testing.T) {
	t.Parallel()
	if s := notice.ReadSettings([]byte(`{"contacts":["a@example.com"],"other":1}`)); len(s.Contacts) != 1 || s.NoDigest {
		t.Errorf("%+v", s)
	}
	for _, junk := range []string{"", "null", `{"contacts":7}`} {
		if s := notice.ReadSettings([]byte(junk)); len(s.Contacts) != 0 {
			t.Errorf("%s: %+v", junk, s)
		}
	}
}

func TestContactsAreKeptOnceAndInLowerCase(t *testing.T) {
	t.Parallel()
	got, err := notice.Contacts("contacts", []string{" Ops@Acme.example ", "ops@acme.example", "ada@acme.example"})
	if want := []string{"ops@acme.example", "ada@acme.example"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	many := make([]string, notice.MaxContacts+1)
	for i := range many {
		many[i] = fmt.Sprintf("a%d@acme.example", i)
	}
	if _, err := notice.Contacts("contacts", many); !fault.Is(err, "contacts_range") {
		t.Errorf("%d contacts: %v", len(many), err)
	}
	if got, err := notice.Contacts("contacts", many[1:]); err != nil || len(got) != notice.MaxContacts {
		t.Errorf("%d contacts: %v", len(many)-1, err)
	}
	_, err = notice.Contacts("contacts", []string{"ada@acme.example", "Ada <ada@acme.example>", "no", "a@acme.example\r\nBcc: b@acme.example"})
	e := fault.As(err)
	if e == nil || len(e.Fields) != 3 || e.Fields[0].Name != "contacts.1" || e.Fields[2].Name != "contacts.3" || e.Code != "email_invalid" ||
		!strings.HasPrefix(e.Fields[1].Detail, `"no" isn't`) {
		t.Errorf("what is no address: %+v", e)
	}
}

func TestSettingsOfNoticesLeaveOthersAlone(t *testing.T) {
	t.Parallel()
	text, err := notice.Settings{Contacts: []string{"a@acme.example"}, NoDigest: true}.Write([]byte(`{"health":{"gone":false},"contacts":["b@acme.example"]}`))
	if want := `{"contacts":["a@acme.example"],"health":{"gone":false},"no_digest":true}`; err != nil || string(text) != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
	if s := notice.ReadSettings(text); !s.NoDigest || len(s.Contacts) != 1 {
		t.Errorf("read as %+v", s)
	}
	if text, err = (notice.Settings{}).Write(text); err != nil || string(text) != `{"health":{"gone":false}}` {
		t.Errorf("%s, %v", text, err)
	}
}

func TestATenantMutesKinds(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := notice.Settings{Contacts: []string{"a@acme.example"}}.
		Mute(notice.KeyCreated, true).Mute(notice.Digest, true).Mute(notice.SecretRotated, true).Mute(notice.SecretRotated, false)
	text, err := s.Write([]byte(`{"other":1}`))
	if want := `{"contacts":["a@acme.example"],"muted_notices":["key.created"],"no_digest":true,"other":1}`; err != nil || string(text) != want {
		t.Errorf("%s, %v, want %s", text, err, want)
	}
	if s = notice.ReadSettings(text); !s.NoDigest || !slices.Equal(s.Muted, []notice.Kind{notice.KeyCreated}) {
		t.Errorf("%+v", s)
	}
	endpoint := health.Mute{At: now.Add(-time.Hour)}
	for _, k := range notice.Kinds() {
		want := k == notice.KeyCreated || k == notice.Digest
		if s.Silences(k, health.Mute{}, now) != want || s.Silences(k, endpoint, now) != (want || k.Mutable()) {
			t.Errorf("%s: the mutes of a tenant and of an endpoint are one rule", k)
		}
	}
	if back := s.Mute(notice.KeyCreated, false).Mute(notice.Digest, false); len(back.Muted) != 0 || back.NoDigest || len(back.Contacts) != 1 {
		t.Errorf("%+v", back)
	}
	got, err := notice.MutedKinds("muted_notices", []string{"key.created", "endpoint.warning", "key.created"})
	if want := []notice.Kind{notice.EndpointWarning, notice.KeyCreated}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	_, err = notice.MutedKinds("muted_notices", []string{"key.created", "digest", "posthorn.key.created"})
	if f := fault.As(err); f == nil || len(f.Fields) != 2 || f.Fields[0].Name != "muted_notices.1" || f.Fields[1].Code != "notice_kind_unknown" {
		t.Errorf("%v", err)
	}
}
