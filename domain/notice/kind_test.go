package notice_test

import (
	"slices"
	"testing"

	"posthorn/domain/access"
	"posthorn/domain/notice"
)

func TestEveryKindHasItsRule(t *testing.T) {
	t.Parallel()
	seen := map[notice.Kind]bool{}
	for _, k := range notice.Kinds() {
		if seen[k] {
			t.Errorf("%s is there twice", k)
		}
		seen[k] = true
		if !k.Known() || k.Label() == "" || !k.SeenBy(access.Owner) ||
			!slices.Contains([]notice.Severity{notice.Info, notice.Warning, notice.Critical}, k.Severity()) {
			t.Errorf("%s has no whole rule", k)
		}
	}
	if k := notice.Kind("junk"); k.Known() || k.MailedByDefault() || k.SeenBy(access.Owner) || k.OfPlatform() ||
		k.AlertsOperators() {
		t.Error("an unknown kind is nobody's")
	}
}

func TestOperationalWebhooksAreTheDocumentedOnes(t *testing.T) {
	t.Parallel()
	var of []notice.Kind
	for _, k := range notice.Kinds() {
		if k.OfPlatform() {
			of = append(of, k)
		}
	}
	slices.Sort(of)
	if want := []notice.Kind{
		notice.DeliveryFailed, notice.EndpointDisabled, notice.EndpointRecovered,
		notice.EndpointWarning, notice.FeedUnread, notice.SecretRotated,
	}; !slices.Equal(of, want) {
		t.Errorf("%q, want %q", of, want)
	}
}

func TestAViewerHearsNothingOfSecretsAndKeys(t *testing.T) {
	t.Parallel()
	for _, k := range notice.KindsFor(access.Viewer) {
		if k == notice.SecretRotated || k == notice.KeyCreated || k == notice.QuotaReached {
			t.Errorf("a viewer sees %s", k)
		}
	}
	if n := len(notice.KindsFor(access.Owner)); n != len(notice.Kinds()) {
		t.Errorf("an owner sees %d kinds of %d", n, len(notice.Kinds()))
	}
}
