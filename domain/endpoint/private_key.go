package endpoint

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"strings"
)

// maxPrivateKey bounds the text of a private key, in bytes.
const maxPrivateKey = 16 << 10

// PrivateKey is the private key of a text in PEM, and the text as it is stored, in PKCS #8. refusal says what is wrong
// with it, without a part of the text; empty if nothing is.
func PrivateKey(text string) (key crypto.Signer, tidy, refusal string) {
	const whole = "Send everything from -----BEGIN PRIVATE KEY----- to -----END PRIVATE KEY-----."
	if len(text) > maxPrivateKey {
		return nil, "", "A private key has at most 16 KiB. " + whole
	}
	var block *pem.Block
	for rest := []byte(text); ; {
		if block, rest = pem.Decode(rest); block == nil {
			return nil, "", "This isn't a private key in PEM. " + whole
		}
		if strings.HasSuffix(block.Type, "PRIVATE KEY") {
			break // openssl writes the parameters of a curve before the key
		}
	}
	if block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "" {
		return nil, "", "This private key is encrypted with a passphrase. Send it decrypted, such as by openssl pkey. It is stored encrypted and never shown."
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		if parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes); err != nil {
			parsed, err = x509.ParseECPrivateKey(block.Bytes)
		}
	}
	if err != nil {
		return nil, "", "This private key can't be read. Send an RSA, ECDSA, or Ed25519 key in PEM."
	}
	switch k := parsed.(type) {
	case *rsa.PrivateKey:
		if k.N.BitLen() < 2048 {
			return nil, "", "An RSA key must have at least 2,048 bits."
		}
		key = k
	case *ecdsa.PrivateKey:
		if k.Curve.Params().BitSize < 256 {
			return nil, "", "An ECDSA key must be on the curve P-256, P-384, or P-521."
		}
		key = k
	case ed25519.PrivateKey:
		key = k
	default:
		return nil, "", "This kind of private key can't sign. Send an RSA, ECDSA, or Ed25519 key."
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, "", "This private key can't be read. Send an RSA, ECDSA, or Ed25519 key in PEM."
	}
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), ""
}
