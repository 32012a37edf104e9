package egress

import (
	"fmt"
	"slices"
	"strings"

	"posthorn/domain/fault"
)

// The bounds on an endpoint's custom headers (SECURITY, "Egress"), in headers and in bytes.
const (
	maxHeaders     = 20
	maxHeaderName  = 128
	maxHeaderValue = 4 << 10
)

// reservedHeaders are names that a tenant can't set, in lower case, with whose they are.
var reservedHeaders = map[string]string{
	"connection":          hopByHop,
	"keep-alive":          hopByHop,
	"proxy-authenticate":  hopByHop,
	"proxy-authorization": hopByHop,
	"proxy-connection":    hopByHop,
	"te":                  hopByHop,
	"trailer":             hopByHop,
	"trailers":            hopByHop,
	"transfer-encoding":   hopByHop,
	"upgrade":             hopByHop,
	"http2-settings":      hopByHop,
	"host":                ours,
	"content-length":      ours,
	"content-encoding":    ours,
	"content-type":        ours,
	"accept-encoding":     ours,
	"user-agent":          ours,
	"expect":              ours,
	"signature":           ours,
	"signature-input":     ours,
	"x-delivery-id":       ours,
	"forwarded":           origin,
	"via":                 origin,
	"x-real-ip":           origin,
	"true-client-ip":      origin,
	"x-original-url":      origin,
	"x-rewrite-url":       origin,
	"metadata":            platform,
}

// reservedPrefixes are the families of names that a tenant can't set, in lower case. The clouds' are refused because
// their metadata services take a header as proof that a request is meant for them.
var reservedPrefixes = []struct{ prefix, whose string }{
	{"webhook-", ours},
	{"x-webhook-", ours},
	{"x-forwarded-", origin},
	{"metadata-", platform},
	{"x-metadata-", platform},
	{"x-aws-", platform},
	{"x-amz-", platform},
	{"x-amzn-", platform},
	{"x-goog-", platform},
	{"x-google-", platform},
	{"x-azure-", platform},
	{"x-ms-", platform},
	{"x-envoy-", platform},
	{"x-upstream-", platform},
	{"x-smokescreen-", platform},
}

const (
	hopByHop = "belongs to the connection and not to the request"
	ours     = "is set by Posthorn"
	origin   = "states where a request came from, which only proxies can set"
	platform = "is reserved for cloud and proxy services"
)

// CheckHeaders decides about all custom headers of an endpoint: at most 20, no name twice in different case, and none
// of the names that the endpoint's own wire format sets, where the caller names them. The error is a *fault.Error with
// code custom_header_refused and a field custom_headers.NAME for each that is rejected, in the order of the names. The
// value is never repeated, since it can be a secret.
func CheckHeaders(h map[string]string, format ...string) error {
	if len(h) > maxHeaders {
		return fault.InvalidField("custom_headers", "custom_header_refused",
			fmt.Sprintf("The endpoint has %d custom headers; the maximum is %d.", len(h), maxHeaders))
	}
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	var fields []fault.Field
	seen := make(map[string]string, len(h))
	for _, name := range names {
		lower := strings.ToLower(name)
		why := headerFault(name, h[name])
		switch {
		case why != "":
		case slices.ContainsFunc(format, func(own string) bool { return strings.EqualFold(own, name) }):
			why = fmt.Sprintf("The header %s %s in this endpoint's format. Choose another name.", name, ours)
		case seen[lower] != "":
			why = fmt.Sprintf("The headers %s and %s are the same, because case is ignored. Keep one.", seen[lower], name)
		}
		seen[lower] = name
		if why != "" {
			fields = append(fields, headerField(name, why))
		}
	}
	// An untyped nil: a nil *fault.Error in an error is not nil.
	if len(fields) == 0 {
		return nil
	}
	return fault.InvalidFields(fields)
}

func headerField(name, why string) fault.Field {
	if !headerToken(name) || len(name) > maxHeaderName {
		name = fmt.Sprintf("%+.64q", name) // a field's name goes into logs and pages: no control characters
	}
	return fault.Field{Name: "custom_headers." + name, Code: "custom_header_refused", Detail: why}
}

// headerFault says why a header is refused, or nothing.
func headerFault(name, value string) string {
	if !headerToken(name) {
		return "A header name can contain only letters, digits, and !#$%&'*+-.^_`|~, and must not be empty."
	}
	if len(name) > maxHeaderName {
		return fmt.Sprintf("The header name has %d bytes; the maximum is %d.", len(name), maxHeaderName)
	}
	if whose := reserved(strings.ToLower(name)); whose != "" {
		return fmt.Sprintf("The header %s %s. Choose another name.", name, whose)
	}
	if len(value) > maxHeaderValue {
		return fmt.Sprintf("The value of %s has %d bytes; the maximum is %d.", name, len(value), maxHeaderValue)
	}
	if strings.Trim(value, " \t") != value {
		return fmt.Sprintf("The value of %s starts or ends with white space, which HTTP doesn't preserve. Remove it.", name)
	}
	for i := range len(value) {
		// Bytes over 0x7e are sent by net/http as they are and read differently by every server.
		if c := value[i]; c != '\t' && (c < ' ' || c > '~') {
			return fmt.Sprintf("The value of %s contains a line break, a control character, or a non-ASCII character. Remove or encode it.", name)
		}
	}
	return ""
}

// reserved says whose a lower-case name is, or nothing. Every wire format signs in a header that ends in -signature,
// whatever its prefix.
func reserved(name string) string {
	if whose := reservedHeaders[name]; whose != "" {
		return whose
	}
	if strings.HasSuffix(name, "-signature") {
		return ours
	}
	for _, family := range reservedPrefixes {
		if strings.HasPrefix(name, family.prefix) {
			return family.whose
		}
	}
	return ""
}

// headerToken reports whether a text is a token, as a field name must be (RFC 9110 section 5.6.2).
func headerToken(name string) bool {
	if name == "" {
		return false
	}
	for i := range len(name) {
		c := name[i]
		alphanumeric := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alphanumeric && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return true
}

// SensitiveHeader reports whether a header's value is write-only: once stored it is sent to the endpoint and never
// shown. In doubt it hides the value.
func SensitiveHeader(name string) bool {
	name = strings.ToLower(name)
	for _, part := range []string{"authorization", "authentication", "cookie", "secret", "token", "password", "passwd", "credential", "session", "signature", "bearer", "jwt", "apikey", "api_key"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	return slices.ContainsFunc(words, func(word string) bool {
		return word == "auth" || word == "pass" || word == "pwd" || strings.HasSuffix(word, "key")
	})
}
