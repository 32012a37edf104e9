package delivery

import "fmt"

// alertNames are the TLS alerts by their numbers, as in the TLS Alerts registry of IANA.
var alertNames = map[uint8]string{
	10:  "unexpected_message",
	20:  "bad_record_mac",
	21:  "decryption_failed",
	22:  "record_overflow",
	30:  "decompression_failure",
	40:  "handshake_failure",
	41:  "no_certificate",
	42:  "bad_certificate",
	43:  "unsupported_certificate",
	44:  "certificate_revoked",
	45:  "certificate_expired",
	46:  "certificate_unknown",
	47:  "illegal_parameter",
	48:  "unknown_ca",
	49:  "access_denied",
	50:  "decode_error",
	51:  "decrypt_error",
	52:  "too_many_cids_requested",
	60:  "export_restriction",
	70:  "protocol_version",
	71:  "insufficient_security",
	80:  "internal_error",
	86:  "inappropriate_fallback",
	90:  "user_canceled",
	100: "no_renegotiation",
	109: "missing_extension",
	110: "unsupported_extension",
	111: "certificate_unobtainable",
	112: "unrecognized_name",
	113: "bad_certificate_status_response",
	114: "bad_certificate_hash_value",
	115: "unknown_psk_identity",
	116: "certificate_required",
	117: "general_error",
	120: "no_application_protocol",
	121: "ech_required",
}

// alertCauses are the alerts of which more can be said than their name.
var alertCauses = map[uint8]string{
	40:  "the server supports none of the offered TLS settings: it needs TLS 1.3, or TLS 1.2 with an ECDHE cipher suite",
	49:  "the server denied access",
	70:  "the server supports only TLS versions older than 1.2",
	71:  "the server requires stronger TLS settings than those offered",
	80:  "the server reported an internal error of its TLS",
	112: "the server doesn't know the host name",
	116: "the server requires a client certificate, which this endpoint doesn't have",
	120: "the server supports no HTTP/1.1 at this port",
}

// ClientCertificate is what became of a client certificate in a handshake.
type ClientCertificate int

// What became of it.
const (
	CertificateNotAsked ClientCertificate = iota // the server did not ask for one
	CertificateNone                              // the server asked, and the endpoint has none
	CertificateSent
)

// TLSAlert says in a sentence what a server's TLS alert means. Servers before TLS 1.3 say with several alerts that they
// require a client certificate, and each version with several that they reject one.
func TLSAlert(code uint8, certificate ClientCertificate) string {
	name := alertNames[code]
	if name == "" {
		name = fmt.Sprint(code)
	}
	cause, about := alertCauses[code], code == 40 || code >= 41 && code <= 46 || code == 49
	switch {
	case certificate == CertificateNone && about:
		cause = alertCauses[116]
	case certificate == CertificateSent && (about || code == 48 || code == 51 || code == 116):
		cause = "the server rejected the endpoint's client certificate"
	}
	if cause == "" {
		cause = "the server ended the TLS connection"
	}
	return cause + " (TLS alert " + name + ")"
}
