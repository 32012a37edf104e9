package endpoint_test

import (
	_ "embed"
	"errors"
	"strings"
	"testing"

	"posthorn/domain/egress"
	"posthorn/domain/endpoint"
	"posthorn/domain/fault"
)

// authority is a certificate that vouches for others, made for these tests; it is good for a hundred years.
//
//go:embed testdata/authority.pem
var authority string

func TestTheAuthorityOfBrokersIsOneOrMoreCertificatesAndNothingElse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text, kept, says string
		plain            bool
	}{
		"one":                  {text: authority, kept: authority},
		"two":                  {text: authority + authority, kept: authority + authority},
		"none":                 {text: "  \n", kept: ""},
		"words around it":      {text: "my CA:\n" + authority + "\nthat was it\n", kept: authority},
		"with line ends of \r": {text: strings.ReplaceAll(authority, "\n", "\r\n"), kept: authority},
		"no PEM":               {text: "my CA", says: "isn't a PEM certificate"},
		"cut off":              {text: authority[:len(authority)/2], says: "isn't a PEM certificate"},
		"a private key":        {text: authority + "-----BEGIN EC PRIVATE KEY-----\nc2VjcmV0\n-----END EC PRIVATE KEY-----\n", says: "private key"},
		"a public key":         {text: "-----BEGIN PUBLIC KEY-----\nc2VjcmV0\n-----END PUBLIC KEY-----\n", says: "isn't a certificate."},
		"other bytes":          {text: "-----BEGIN CERTIFICATE-----\nc2VjcmV0\n-----END CERTIFICATE-----\n", says: "isn't a certificate."},
		"eleven":               {text: strings.Repeat(authority, 11), says: "at most 10"},
		"very long":            {text: authority + strings.Repeat("a", endpoint.MaxKafkaCA), says: "at most 16,384 bytes"},
		"without TLS":          {text: authority, plain: true, says: "turn on tls"},
	} {
		s, k := topic()
		allow, err := egress.ParseAllow("10.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		k.Servers = []string{"10.0.0.1:9092"} // one that may be spoken to without TLS
		k.CA, k.TLS = c.text, !c.plain
		kept, err := s.Check(allow)
		if c.says == "" {
			if err != nil || kept.Connection.(*endpoint.KafkaConnection).CA != c.kept {
				t.Errorf("%s: %v, kept %+v", name, err, kept.Connection)
			}
			continue
		}
		var refused *fault.Error
		if !errors.As(err, &refused) || len(refused.Fields) != 1 || refused.Fields[0].Name != "kafka.ca_certificate" ||
			refused.Code != "ca_certificate_refused" || !strings.Contains(refused.Detail, c.says) || strings.Contains(refused.Detail, "c2VjcmV0") {
			t.Errorf("%s: %+v", name, err)
		}
	}
}
