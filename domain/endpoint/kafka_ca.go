package endpoint

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
)

// The bounds of the authorities that an endpoint names for its brokers.
const (
	MaxKafkaCA           = 16 << 10 // bytes of PEM
	maxKafkaCertificates = 10
)

// Certificates are those of a text in PEM, and the text without what stands beside them. refusal says what is wrong with it;
// empty where nothing is.
func Certificates(text string) (all []*x509.Certificate, tidy, refusal string) {
	if len(text) > MaxKafkaCA {
		return nil, "", fmt.Sprintf("Certificates have at most %s bytes of PEM; these have %s.", thousands(MaxKafkaCA), thousands(len(text)))
	}
	var out bytes.Buffer
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if strings.Contains(block.Type, "PRIVATE KEY") {
			return nil, "", "This holds a private key. Give the certificate alone, and take the key for known to others."
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if block.Type != "CERTIFICATE" || err != nil {
			return nil, "", "One of the blocks of PEM is no certificate. Give those that begin with -----BEGIN CERTIFICATE-----, each whole."
		}
		all = append(all, c)
		_ = pem.Encode(&out, &pem.Block{Type: block.Type, Bytes: block.Bytes}) // a buffer takes everything
	}
	switch {
	case len(all) == 0:
		return nil, "", "This is no certificate in PEM. Give it from -----BEGIN CERTIFICATE----- to -----END CERTIFICATE-----."
	case len(all) > maxKafkaCertificates:
		return nil, "", fmt.Sprintf("Give at most %d certificates; these are %d.", maxKafkaCertificates, len(all))
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

// kafkaCA checks the authorities that the brokers' certificates are issued by, where they are named.
func (c *collector) kafkaCA(k *KafkaConnection) {
	if k.CA = strings.TrimSpace(k.CA); k.CA == "" {
		return
	}
	_, tidy, refusal := Certificates(k.CA)
	if refusal == "" && !k.TLS {
		refusal = "Without TLS the brokers show no certificate. Leave ca_certificate out, or switch tls on."
	}
	if refusal != "" {
		c.refuse("kafka.ca_certificate", "ca_certificate_refused", refusal)
		return
	}
	k.CA = tidy
}
