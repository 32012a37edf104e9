package signature_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"posthorn/domain/signature"
)

// testdata/vectors.json holds signatures that other implementations made: the reference libraries of Standard Webhooks,
// Svix, Stripe's scheme as Hook0 wrote it, GitHub's documentation. testdata is the contract; the code is what is
// tested.
type corpus struct {
	Schemes map[string]struct {
		Vectors []vector `json:"vectors"`
	} `json:"schemes"`
	VerifyCases []struct {
		Scheme  string             `json:"scheme"`
		Change  string             `json:"change"`
		Headers map[string]*string `json:"headers"`
		Now     int64              `json:"now"`
		Expect  string             `json:"expect"`
	} `json:"verify_cases"`
	SecretCases []struct {
		Secret string `json:"secret"`
		Expect string `json:"expect"`
		Why    string `json:"why"`
	} `json:"secret_format_cases"`
}

type vector struct {
	Name             string   `json:"name"`
	Secrets          []string `json:"secrets"`
	SymmetricSecrets []string `json:"symmetric_secrets"`
	SecretKeys       []string `json:"secret_keys"`
	PublicKeys       []string `json:"public_keys"`
	Timestamp        int64    `json:"timestamp"`
	Body             struct {
		UTF8   *string `json:"utf8"`
		B64    *string `json:"b64"`
		Repeat *struct {
			Unit  string `json:"unit"`
			Count int    `json:"count"`
		} `json:"repeat"`
		Length int    `json:"length"`
		SHA256 string `json:"sha256"`
	} `json:"body"`
	Headers map[string]any `json:"headers"`
}

func loadCorpus(t *testing.T) corpus {
	t.Helper()
	text, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var c corpus
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func (v vector) bytes(t *testing.T) []byte {
	t.Helper()
	var body []byte
	switch {
	case v.Body.UTF8 != nil:
		body = []byte(*v.Body.UTF8)
	case v.Body.B64 != nil:
		var err error
		if body, err = base64.StdEncoding.DecodeString(*v.Body.B64); err != nil {
			t.Fatal(err)
		}
	default:
		body = []byte(strings.Repeat(v.Body.Repeat.Unit, v.Body.Repeat.Count))
	}
	sum := sha256.Sum256(body)
	if len(body) != v.Body.Length || hex.EncodeToString(sum[:]) != v.Body.SHA256 {
		t.Fatalf("the vector's body is not what its hash says")
	}
	return body
}

// schemes says which format speaks each scheme of the corpus, and under which prefix its header has the corpus's name.
var schemes = map[string]struct {
	format    signature.Format
	prefix    string
	signature string
	count     int
}{
	"standard_webhooks_v1":          {signature.Standard, "", "webhook-signature", 8},
	"standard_webhooks_v1a_ed25519": {signature.Standard, "", "webhook-signature", 7},
	"x_webhook_signature_v1_hex":    {signature.XWebhook, "", "X-Webhook-Signature", 6},
	"stripe_style_t_v1":             {signature.TV1, "X-Webhook", "X-Webhook-Signature", 7},
	"body_only_hex":                 {signature.BodyHex, "Hub", "raw_hex", 7},
}

func (v vector) secrets() []string { return slices.Concat(v.Secrets, v.SymmetricSecrets, v.SecretKeys) }

func (v vector) header(name string) string {
	for k, value := range v.Headers {
		if text, ok := value.(string); ok && strings.EqualFold(k, name) {
			return text
		}
	}
	return ""
}

func (v vector) signedAt(t *testing.T) time.Time {
	t.Helper()
	seconds := v.Timestamp
	if text := v.header("webhook-timestamp"); text != "" {
		var err error
		if seconds, err = strconv.ParseInt(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return time.Unix(seconds, 0)
}

func keys(t testing.TB, f signature.Format, secrets ...string) []signature.Key {
	t.Helper()
	var all []signature.Key
	for _, s := range secrets {
		k, err := signature.ParseKey(f, s)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, k)
	}
	return all
}

func get(headers []signature.Header, name string) string {
	for _, h := range headers {
		if strings.EqualFold(h.Name, name) {
			return h.Value
		}
	}
	return ""
}

func TestOtherImplementationsMakeTheSameSignatures(t *testing.T) {
	t.Parallel()
	c := loadCorpus(t)
	if len(c.Schemes) != len(schemes) {
		t.Fatalf("the corpus has %d schemes, %d are known", len(c.Schemes), len(schemes))
	}
	for name, scheme := range c.Schemes {
		how := schemes[name]
		if len(scheme.Vectors) != how.count {
			t.Errorf("%s: %d vectors, want %d", name, len(scheme.Vectors), how.count)
		}
		for _, v := range scheme.Vectors {
			t.Run(name+"/"+v.Name, func(t *testing.T) {
				t.Parallel()
				body, want, when := v.bytes(t), v.header(how.signature), v.signedAt(t)
				s := signature.Signing{
					Format: how.format,
					Prefix: how.prefix,
					Keys:   keys(t, how.format, v.secrets()...),
				}
				if err := s.Validate(); err != nil {
					t.Fatal(err)
				}
				m := signature.Message{EventID: v.header("webhook-id")}
				sent := s.Headers(nil, m, body, signature.Send{At: when, Attempt: 1})
				ours := how.signature
				if how.format == signature.BodyHex {
					ours = "X-Hub-Signature"
				}
				if got := get(sent, ours); got != want || want == "" {
					t.Errorf("got  %s\nwant %s", got, want)
				}
				find := func(name string) string { return get(sent, name) }
				for _, secret := range slices.Concat(v.secrets(), v.PublicKeys) {
					if err := (signature.Wire{Format: how.format, Prefix: how.prefix}).Verify(find, body, []string{secret}, when, 0); err != nil {
						t.Errorf("does not verify: %v", err)
					}
				}
			})
		}
	}
}

func TestARawSignatureIsTheHexOverTimestampAndBody(t *testing.T) {
	t.Parallel()
	// The corpus has no scheme of this name, but x-webhook signs the same content and differs in its mark alone.
	for _, v := range loadCorpus(t).Schemes["x_webhook_signature_v1_hex"].Vectors {
		s := signature.Signing{Format: signature.Raw, Keys: keys(t, signature.Raw, v.Secrets...)}
		sent := s.Headers(nil, signature.Message{}, v.bytes(t), signature.Send{At: v.signedAt(t), Attempt: 1})
		want := strings.TrimPrefix(v.header("X-Webhook-Signature"), "v1=")
		if got := get(sent, "X-Webhook-Signature"); got != want || len(want) != 64 {
			t.Errorf("%s: got %s, want %s", v.Name, got, want)
		}
	}
}

func TestTheVerifyCasesOfTheCorpus(t *testing.T) {
	t.Parallel()
	c := loadCorpus(t)
	if len(c.VerifyCases) != 11 {
		t.Fatalf("%d cases", len(c.VerifyCases))
	}
	paid := []byte(`{"type":"invoice.paid","timestamp":"2026-01-02T03:04:05.678901Z","data":{"id":"inv_1","amount":1250}}`)
	bases := map[string]struct{ secret, signature string }{
		"standard_webhooks_v1": {
			"whsec_AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=", "v1,wp6vdYhzfYxt4p5UcvB0o8yICTSmkjc3RrOACvT/2Lk=",
		},
		"stripe_style_t_v1": {
			"whsec_c2VjcmV0LW9uZQ", "t=1700000000,v1=a8e30efce62a4457c1fa3486410ec51e14cda21247c3d1461c41a1730cac6789",
		},
	}
	for _, tt := range c.VerifyCases {
		t.Run(tt.Scheme+"/"+tt.Change, func(t *testing.T) {
			t.Parallel()
			how, base := schemes[tt.Scheme], bases[tt.Scheme]
			headers := map[string]string{
				"webhook-id":                   "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W",
				"webhook-timestamp":            "1700000000",
				strings.ToLower(how.signature): base.signature,
			}
			verify := func(body []byte, now int64) error {
				find := func(name string) string { return headers[strings.ToLower(name)] }
				return signature.Wire{Format: how.format, Prefix: how.prefix}.Verify(find, body, []string{base.secret},
					time.Unix(now, 0), signature.DefaultTolerance)
			}
			if err := verify(paid, 1700000000); err != nil {
				t.Fatalf("the unchanged request is refused: %v", err)
			}
			for name, value := range tt.Headers {
				delete(headers, strings.ToLower(name))
				if value != nil {
					headers[strings.ToLower(name)] = *value
				}
			}
			body := slices.Clone(paid)
			if tt.Change == "one byte of body changed" {
				body[len(body)/2] ^= 1
			}
			err := verify(body, tt.Now)
			if (err == nil) != (tt.Expect == "accept") {
				t.Errorf("want %s, got error %v", tt.Expect, err)
			}
		})
	}
}

func TestTheSecretCasesOfTheCorpus(t *testing.T) {
	t.Parallel()
	c := loadCorpus(t)
	if len(c.SecretCases) != 6 {
		t.Fatalf("%d cases", len(c.SecretCases))
	}
	for _, tt := range c.SecretCases {
		_, err := signature.ParseKey(signature.Standard, tt.Secret)
		if (err == nil) != (tt.Expect == "accept") {
			t.Errorf("%s: want %s, got error %v", tt.Why, tt.Expect, err)
		}
		if err != nil && tt.Secret != "" && strings.Contains(err.Error(), strings.TrimPrefix(tt.Secret, "whsec_")) &&
			len(tt.Secret) > 10 {
			t.Errorf("%s: the error shows the secret: %v", tt.Why, err)
		}
	}
}
