package notice_test

import (
	"testing"
	"time"

	"posthorn/domain/access"
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
	s := notice.Subscription{Tenant: id.New(time.Date(2031, 3, 9, 0, 0, 0, 0, time.UTC), [10]byte{1}), Recipient: notice.AddressRecipient(" Ada@Acme.example "), Kind: notice.Digest}
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
