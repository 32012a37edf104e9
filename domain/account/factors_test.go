package account_test

import (
	"testing"

	"posthorn/domain/account"
)

func TestWhenAPasswordNeedsASecondFactor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		has              account.Factors
		asked, canChoose bool
	}{
		{"a password alone", account.Factors{}, false, false},
		{"an app", account.Factors{App: true}, true, false},
		{"a passkey for convenience", account.Factors{Passkeys: 1}, false, true},
		{"a passkey that is required", account.Factors{Passkeys: 1, Required: true}, true, false},
		{"an app and a passkey", account.Factors{App: true, Passkeys: 1}, true, false},
		{"a wish without a passkey locks nobody out", account.Factors{Required: true}, false, false},
	} {
		if got := c.has.SecondFactor(); got != c.asked {
			t.Errorf("%s: asked %t", c.name, got)
		}
		if got := c.has.CanRequire(); got != c.canChoose {
			t.Errorf("%s: can choose %t", c.name, got)
		}
	}
}
