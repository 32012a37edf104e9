package credential

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base32"
	"fmt"
	"image"
	"net/url"
	"strings"
	"time"

	"github.com/boombuler/barcode/qr"
	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"
)

// The parameters of every authenticator app: RFC 6238 with SHA-1, six digits, 30 seconds. The seed is as long as the
// hash (RFC 4226, section 4, R6).
const (
	seedSize = 20
	period   = 30
	issuer   = "Posthorn"
)

// NewSeed makes the seed of an authenticator.
func NewSeed() []byte {
	seed := make([]byte, seedSize)
	_, _ = rand.Read(seed) // never fails: the program would have crashed
	return seed
}

var letters = base32.StdEncoding.WithPadding(base32.NoPadding)

// SeedText is a seed as people type it, in groups of four.
func SeedText(seed []byte) string {
	text := letters.EncodeToString(seed)
	var b strings.Builder
	for i := 0; i < len(text); i += 4 {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(text[i:min(i+4, len(text))])
	}
	return b.String()
}

// CheckCode finds the step of a code: the present one or one of its two neighbors. The caller accepts each step once.
func CheckCode(seed []byte, code string, now time.Time) (step int64, ok bool) {
	code = strings.ReplaceAll(code, " ", "")
	secret, current := letters.EncodeToString(seed), now.Unix()/period
	for _, at := range []int64{current, current - 1, current + 1} {
		want, err := hotp.GenerateCodeCustom(secret, uint64(at), hotp.ValidateOpts{
			Digits:    otp.DigitsSix,
			Algorithm: otp.AlgorithmSHA1,
		})
		if err == nil && subtle.ConstantTimeCompare([]byte(want), []byte(code)) == 1 {
			step, ok = at, true
		}
	}
	return step, ok
}

// QR is the QR code of a seed for authenticator apps: its modules per side, and the dark ones as an SVG path.
func QR(seed []byte, account string) (size int, path string, err error) {
	text := "otpauth://totp/" + url.PathEscape(issuer+":"+account) + "?" + url.Values{
		"secret":    {letters.EncodeToString(seed)},
		"issuer":    {issuer},
		"digits":    {"6"},
		"period":    {"30"},
		"algorithm": {"SHA1"},
	}.Encode()
	code, err := qr.Encode(text, qr.M, qr.Auto)
	if err != nil {
		return 0, "", err
	}
	var b strings.Builder
	size = code.Bounds().Dx()
	for y := range size {
		for x := 0; x < size; x++ {
			run := 0
			for x+run < size && dark(code, x+run, y) {
				run++
			}
			if run > 0 {
				fmt.Fprintf(&b, "M%d %dh%dv1h-%dz", x, y, run, run)
				x += run
			}
		}
	}
	return size, b.String(), nil
}

// Recovery codes have 80 random bits each.
const (
	recoveryCodes = 10
	recoverySize  = 10
)

// NewRecoveryCodes makes codes as people see them, and the text that is hashed of each.
func NewRecoveryCodes() (shown, plain []string) {
	for range recoveryCodes {
		raw := make([]byte, recoverySize)
		_, _ = rand.Read(raw) // never fails: the program would have crashed
		text := strings.ToLower(letters.EncodeToString(raw))
		plain = append(plain, text)
		shown = append(shown, text[:4]+"-"+text[4:8]+"-"+text[8:12]+"-"+text[12:])
	}
	return shown, plain
}

// RecoveryCode is the text that is hashed of a typed code. It is empty if the text does not look like a code.
func RecoveryCode(typed string) string {
	text := strings.ToLower(strings.NewReplacer("-", "", " ", "").Replace(typed))
	if len(text) != recoverySize*8/5 {
		return ""
	}
	return text
}

// dark reports whether a module is black.
func dark(code image.Image, x, y int) bool {
	r, _, _, _ := code.At(x, y).RGBA()
	return r == 0
}
