package endpoint

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"

	"posthorn/domain/words"
)

// The bounds of the authorities that an endpoint names for its brokers.
const (
	MaxKafkaCA           = 16 << 10 // bytes of PEM
	maxKafkaCertificates = 10
)

// Certificates are those of a text in PEM, and the text without other content. refusal says what is wrong with it;
// empty if nothing is.
func Certificates(text string) (all []*x509.Certificate, tidy, refusal string) {
	if len(text) > MaxKafkaCA {
		return nil, "", fmt.Sprintf("Certificates can have at most %s bytes of PEM; these have %s.", words.Number(MaxKafkaCA), words.Number(len(text)))
	}
	var out bytes.Buffer
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if strings.Contains(block.Type, "PRIVATE KEY") {
			return nil, "", "This contains a private key. Send only the certificate, and treat the key as compromised."
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if block.Type != "CERTIFICATE" || err != nil {
			return nil, "", "One of the PEM blocks isn't a certificate. Send complete blocks that start with -----BEGIN CERTIFICATE-----."
		}
		all = append(all, c)
		_ = pem.Encode(&out, &pem.Block{Type: block.Type, Bytes: block.Bytes}) // a buffer takes everything
	}
	switch {
	case len(all) == 0:
		return nil, "", "This isn't a PEM certificate. Send everything from -----BEGIN CERTIFICATE----- to -----END CERTIFICATE-----."
	case len(all) > maxKafkaCertificates:
		return nil, "", fmt.Sprintf("Send at most %d certificates; there are %d.", maxKafkaCertificates, len(all))
	}
	return all, out.String(), ""
}

// tidyCA is how certificates are kept, or the text as it is where it holds none.
func tidyCA(text string) string {
	if _, tidy, refusal := Certificates(text); refusal == "" {
		return tidy
	}
	return strings.TrimSpace(text)
}

// brokerCA checks the authorities that a broker's certificate is issued by, where they are named. without says what to
// do where there is no TLS.
func (c *collector) brokerCA(field string, ca *string, tls bool, without string) {
	if *ca = strings.TrimSpace(*ca); *ca == "" {
		return
	}
	_, tidy, refusal := Certificates(*ca)
	if refusal == "" && !tls {
		refusal = "ca_certificate needs TLS. " + without
	}
	if refusal != "" {
		c.refuse(field, "ca_certificate_refused", refusal)
		return
	}
	*ca = tidy
}
