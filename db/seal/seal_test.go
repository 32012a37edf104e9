package seal_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"posthorn/db/seal"
	"posthorn/domain/fault"
	"posthorn/domain/id"
)

var (
	tenant = id.UUID{1}
	object = id.UUID{2}
)

func text(fill byte) string { return seal.Generate([32]byte(bytes.Repeat([]byte{fill}, 32))) }

func ring(t *testing.T, keys ...string) *seal.Ring {
	t.Helper()
	r, err := seal.NewRing(strings.Join(keys, ","))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestASealedValueOpensForItsOwnRowAlone(t *testing.T) {
	t.Parallel()
	r := ring(t, text(1))
	sealed := r.Seal([]byte("whsec_secret"), tenant, object)
	if bytes.Contains(sealed, []byte("secret")) {
		t.Error("the plain text shows")
	}
	if got, err := r.Open(sealed, tenant, object); err != nil || string(got) != "whsec_secret" {
		t.Fatalf("got %q, %v", got, err)
	}
	if _, err := r.Open(sealed, id.UUID{9}, object); !errors.Is(err, seal.ErrUnopened) {
		t.Errorf("opened for another tenant: %v", err)
	}
	if _, err := r.Open(sealed, tenant, id.UUID{9}); !errors.Is(err, seal.ErrUnopened) {
		t.Errorf("opened for another endpoint: %v", err)
	}
	if _, err := ring(t, text(2)).Open(sealed, tenant, object); !errors.Is(err, seal.ErrUnopened) {
		t.Errorf("opened under another key: %v", err)
	}
}

func TestEveryChangedOrMissingByteIsNoticed(t *testing.T) {
	t.Parallel()
	r := ring(t, text(1))
	sealed := r.Seal([]byte("x"), tenant, object)
	for i := range sealed {
		bad := bytes.Clone(sealed)
		bad[i] ^= 1
		if _, err := r.Open(bad, tenant, object); err == nil {
			t.Errorf("byte %d changed and it opened", i)
		}
		if _, err := r.Open(sealed[:i], tenant, object); err == nil {
			t.Errorf("cut to %d bytes and it opened", i)
		}
	}
}

func TestTheSameSecretSealsDifferentlyEachTime(t *testing.T) {
	t.Parallel()
	r := ring(t, text(1))
	if bytes.Equal(r.Seal([]byte("x"), tenant, object), r.Seal([]byte("x"), tenant, object)) {
		t.Error("two seals are equal")
	}
}

func TestRotationOpensTheOldAndSealsWithTheNew(t *testing.T) {
	t.Parallel()
	old := ring(t, text(1)).Seal([]byte("x"), tenant, object)
	both := ring(t, text(2), text(1))
	if bytes.HasPrefix(old, both.Head()) {
		t.Error("what the old key sealed has the head of the new key")
	}
	if got, err := both.Open(old, tenant, object); err != nil || string(got) != "x" {
		t.Errorf("the old one does not open: %q, %v", got, err)
	}
	renewed := both.Seal([]byte("x"), tenant, object)
	if !bytes.HasPrefix(renewed, both.Head()) ||
		!bytes.HasPrefix(ring(t, text(2)).Seal(nil, tenant, object), both.Head()) {
		t.Error("what the new key sealed lacks its head")
	}
	if _, err := ring(t, text(2)).Open(renewed, tenant, object); err != nil {
		t.Error("the new key alone does not open it:", err)
	}
}

func TestAWrongMasterKeyIsRefusedWithoutBeingRepeated(t *testing.T) {
	t.Parallel()
	good := text(1)
	for _, keys := range []string{"", "c2hvcnQ=", "not base64!", good + "," + good, good + ",c2VjcmV0", strings.Repeat("A", 86)} {
		_, err := seal.NewRing(keys)
		if !fault.Is(err, "master_key_invalid") {
			t.Errorf("%q: got %v", keys, err)
		} else if keys != "" && strings.Contains(err.Error(), strings.Split(keys, ",")[0]) {
			t.Errorf("the refusal repeats the key: %v", err)
		}
	}
	for _, keys := range []string{good, strings.TrimRight(good, "="), " " + good + " , " + text(2) + ",", strings.NewReplacer("+", "-", "/",
		"_").Replace(text(0xff))} {
		if _, err := seal.NewRing(keys); err != nil {
			t.Errorf("%q refused: %v", keys, err)
		}
	}
}

func TestARingNeverPrintsItsKeys(t *testing.T) {
	t.Parallel()
	r := ring(t, text(7))
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		if got := fmt.Sprintf(verb, r); got != "redacted" {
			t.Errorf("%s prints %s", verb, got)
		}
	}
	if len(r.KeyID()) != 8 {
		t.Errorf("key id %q", r.KeyID())
	}
}
