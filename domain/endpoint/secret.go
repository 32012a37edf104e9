package endpoint

import (
	"cmp"
	"fmt"
	"strings"

	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/signature"
	"posthorn/domain/words"
)

// The rules of rotation (docs/delivery.md).
const (
	maxLiveSecrets = 10
	maxOverlap     = 7 * 24 * 3600 // seconds
	DefaultOverlap = 24 * 3600
)

// SecretType is what a secret is.
type SecretType string

// The types of secrets.
const (
	HMAC    SecretType = "hmac"    // one secret that both sides know
	Ed25519 SecretType = "ed25519" // a key pair; the standard format alone knows it
)

// Secret is the text of a signing secret and what can be shown of it.
type Secret struct {
	Text   string
	Public string // whpk_ of a key pair; empty for HMAC
	Hint   string // its last characters
}

// Format keeps secrets out of logs whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("redacted")) }

// SecretRequest is what somebody asks for as an endpoint's next secret.
type SecretRequest struct {
	Type   SecretType // empty: any
	Text   string     // a secret that receivers know already; empty: a new one
	Random [32]byte   // for a new one
}

// Secret is the requested secret. A new one of any type is a key pair if pair says so and the format knows them. The
// error is a *fault.Error.
func (r SecretRequest) Secret(w signature.Wire, pair bool) (Secret, error) {
	if r.Text == "" {
		kind := r.Type
		if kind == "" && pair && w.Format == signature.Standard {
			kind = Ed25519
		}
		return NewSecret(w.Format, cmp.Or(kind, HMAC), r.Random)
	}
	secret, err := ImportSecret(w, r.Text)
	switch {
	case err != nil:
		return Secret{}, err
	case r.Type == Ed25519 && secret.Public == "":
		return Secret{}, fault.InvalidField(
			"secret",
			"secret_type_refused",
			"This isn't the private key of a pair (whsk_...). Choose the type hmac, or leave the secret out to generate a pair.",
		)
	case r.Type != "" && (r.Type == Ed25519) != (secret.Public != ""):
		return Secret{}, fault.InvalidField(
			"secret_type",
			"secret_type_refused",
			"The secret doesn't have this type. Leave secret_type out.",
		)
	}
	return secret, nil
}

// SignsOne reports whether one secret signs at a time during a rotation.
func (s Settings) SignsOne() bool { return s.Format.Rotation(s.Rotation) == signature.SignOne }

// CheckSwitch says whether an endpoint with so many live secrets can sign with the newest alone.
func CheckSwitch(s Settings, live int) error {
	switch {
	case live == 0:
		return ErrNoSecret
	case !s.SignsOne():
		return fault.New(
			fault.Conflict,
			"secret_not_switched",
			"Every live secret of this endpoint signs, so there is nothing to switch. Rotate with overlap_seconds 0 to end older secrets now, or set rotation_signatures to one.",
		)
	}
	return nil
}

// NewSecret makes a secret of 32 random bytes that a format can sign with. The refusal is a *fault.Error.
func NewSecret(f signature.Format, t SecretType, random [32]byte) (Secret, error) {
	switch t {
	case HMAC:
		return takeSecret(signature.NewSecret(random), ""), nil
	case Ed25519:
		if f != signature.Standard {
			return Secret{}, fault.InvalidField(
				"secret_type",
				"secret_type_refused",
				fmt.Sprintf("The %s format supports only HMAC. Use secret_type hmac, or the standard format.", f),
			)
		}
		text, public := signature.NewKeyPair(random)
		return takeSecret(text, public), nil
	}
	return Secret{}, fault.InvalidField("secret_type", "secret_type_unknown", "secret_type must be hmac or ed25519.")
}

// ImportSecret takes over a secret that receivers know already. The refusal is a *fault.Error that never holds it.
func ImportSecret(w signature.Wire, text string) (Secret, error) {
	key, err := w.ParseKey(text)
	if err != nil {
		return Secret{}, err
	}
	return takeSecret(text, key.Public()), nil
}

func takeSecret(text, public string) Secret {
	return Secret{Text: text, Public: public, Hint: hint(text)}
}

// hint is the end of a secret, to tell secrets apart by: four characters of what is long enough to stay secret without
// them.
func hint(text string) string {
	bare := strings.TrimRight(text, "=")
	if len(bare) < 24 {
		return ""
	}
	end := bare[len(bare)-4:]
	if strings.ContainsFunc(end, func(r rune) bool { return r < '!' || r > '~' }) {
		return "" // the middle of a character
	}
	return end
}

// CanBe reports whether a hint can be that of a secret. One that is empty says nothing.
func CanBe(secret, shown string) bool { return shown == "" || hint(secret) == shown }

// CheckFormat says whether a secret that signs now can sign in another format.
func CheckFormat(w signature.Wire, s Secret) error {
	_, err := w.ParseKey(s.Text)
	if err == nil && (s.Public == "" || w.Format == signature.Standard) {
		return checkAlso(w, s)
	}
	detail := "The endpoint's secret can't sign in this format. Rotate the secret to an HMAC one without an overlap, then change the format."
	return &fault.Error{
		Kind:   fault.Conflict,
		Code:   "format_secret_mismatch",
		Detail: detail,
		Fields: []fault.Field{{Name: "format", Code: "format_secret_mismatch", Detail: detail}},
	}
}

// checkAlso says whether the endpoint's own secret can make the second signature where that has none of its own.
func checkAlso(w signature.Wire, s Secret) error {
	if w.Shape == nil || w.Shape.AlsoSign == nil || w.Shape.AlsoSign.OwnSecret {
		return nil
	}
	if _, err := w.Shape.AlsoSign.Wire().ParseKey(s.Text); err == nil && s.Public == "" {
		return nil
	}
	detail := "The endpoint's secret can't sign in the format of also_sign. Give also_sign a secret of its own."
	return &fault.Error{
		Kind:   fault.Conflict,
		Code:   "format_secret_mismatch",
		Detail: detail,
		Fields: []fault.Field{{Name: "wire.also_sign.secret", Code: "format_secret_mismatch", Detail: detail}},
	}
}

// CheckOverlap says whether an old secret can go on signing for so many seconds.
func CheckOverlap(seconds int) error {
	if seconds >= 0 && seconds <= maxOverlap {
		return nil
	}
	return fault.InvalidField(
		"overlap_seconds",
		"out_of_range",
		fmt.Sprintf("overlap_seconds must be from 0 to %s (7 days).", words.Number(maxOverlap)),
	)
}

// CheckLive says whether a secret can be added to so many live ones.
func CheckLive(live int) error {
	if live < maxLiveSecrets {
		return nil
	}
	return fault.New(fault.Conflict, "secrets_limit", fmt.Sprintf(
		"The endpoint has %d live secrets, the maximum. Wait until an overlap ends, or rotate with overlap_seconds 0, which ends all of them.", live))
}

// Slot is the index of the secret that signs where a format has room for one signature, among the ids of the live
// secrets, newest first: after a rotation the one that signed before it, until the member switches or its overlap ends.
func Slot(live []id.UUID, chosen *id.UUID) int {
	if chosen != nil {
		for i, secret := range live {
			if secret == *chosen {
				return i
			}
		}
	}
	return 0
}

// ErrNoSecret says that an endpoint has nothing to sign with.
var ErrNoSecret = fault.New(fault.Conflict, "secret_missing", "The endpoint has no live secret. Rotate its secret to create one.")
