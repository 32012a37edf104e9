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

// owner is whose a header name is.
type owner struct {
	why    string // completes "The header X"
	wire   bool   // wire settings can't choose such a name
	custom bool   // custom headers can't have such a name
}

// Who owns header names. What wire formats set is closed to custom headers alone: with wire settings a tenant chooses
// where the id and the signature are.
var (
	hopByHop = owner{why: "belongs to the connection and not to the request", wire: true, custom: true}
	ours     = owner{why: "is set automatically", wire: true, custom: true}
	format   = owner{why: "is set by a wire format", custom: true}
	origin   = owner{why: "states where a request came from, which only proxies can set", wire: true, custom: true}
	platform = owner{why: "is reserved for cloud and proxy services", wire: true, custom: true}
	homes    = owner{why: "is used between this service's own servers", wire: true, custom: true}
	receiver = owner{why: "has no meaning in a webhook", wire: true, custom: true}
	login    = owner{why: "is for credentials, which custom headers carry", wire: true}
)

// reservedHeaders are the owners of names, in lower case. It is the only such table: custom headers, the names and
// prefixes of wire settings, and the prefix of a format are all decided by it.
var reservedHeaders = map[string]owner{
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
	"signature":           format,
	"signature-input":     format,
	"signature-agent":     format,
	"content-digest":      format,
	"x-delivery-id":       format,
	"forwarded":           origin,
	"via":                 origin,
	"x-forwarded":         origin,
	"x-real-ip":           origin,
	"x-client-ip":         origin,
	"x-cluster-client-ip": origin,
	"true-client-ip":      origin,
	"cf-connecting-ip":    origin,
	"fastly-client-ip":    origin,
	"x-original-url":      origin,
	"x-original-host":     origin,
	"x-rewrite-url":       origin,
	"metadata":            platform,
	"set-cookie":          receiver,
	"range":               receiver,
	"authorization":       login,
	"cookie":              login,
}

// reservedPrefixes are the owners of families of names, in lower case. The clouds' are refused because their metadata
// services take a header as proof that a request is meant for them.
var reservedPrefixes = []struct {
	prefix string
	owner  owner
}{
	{"webhook-", format},
	{"x-webhook-", format},
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
	{"posthorn-", homes},
}

// Wire formats end names in these, whatever their prefix. Those of formatEndings follow "x-" and a prefix.
var (
	anyEndings    = []string{"-signature", "-event-id", "-event-type", "-webhook-id"}
	formatEndings = []string{"-event", "-delivery", "-timestamp", "-attempt", "-retry", "-replayed"}
)

// ownerOf says whose a name is.
func ownerOf(name string) owner {
	name = strings.ToLower(name)
	if whose, ok := reservedHeaders[name]; ok {
		return whose
	}
	for _, family := range reservedPrefixes {
		if strings.HasPrefix(name, family.prefix) {
			return family.owner
		}
	}
	for _, end := range anyEndings {
		if strings.HasSuffix(name, end) {
			return format
		}
	}
	for _, end := range formatEndings {
		if strings.HasPrefix(name, "x-") && strings.HasSuffix(name, end) && len(name) > len("x")+len(end) {
			return format
		}
	}
	return owner{}
}

// FormatHeader reports whether some wire format with some prefix sets a header of this name, whatever its case.
// Custom headers with such a name are refused whatever the endpoint's own format and prefix, because both can be
// changed later and a custom header must never stand where a receiver looks for a signature.
func FormatHeader(name string) bool { return ownerOf(name) == format }

// ReservedInWire says why a format's header can't have a name, or nothing.
func ReservedInWire(name string) string {
	if whose := ownerOf(name); whose.wire {
		return fmt.Sprintf("The header %s %s. Choose another name.", name, whose.why)
	}
	return ""
}

// CheckHeaders decides about all custom headers of an endpoint: at most 20, no name twice in different case, and none
// of the names that the endpoint's own wire format sets, where the caller names them. The error is a *fault.Error with
// code custom_header_refused and a field custom_headers.NAME for each that is rejected, in the order of the names. The
// value is never repeated, since it can be a secret.
func CheckHeaders(h map[string]string, own ...string) error {
	if len(h) > maxHeaders {
		return fault.InvalidField(
			"custom_headers",
			"custom_header_refused",
			fmt.Sprintf("The endpoint has %d custom headers; the maximum is %d.", len(h), maxHeaders),
		)
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
		case slices.ContainsFunc(own, func(own string) bool { return strings.EqualFold(own, name) }):
			why = fmt.Sprintf("The header %s is set by this endpoint's format. Choose another name.", name)
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
	if whose := ownerOf(name); whose.custom {
		return fmt.Sprintf("The header %s %s. Choose another name.", name, whose.why)
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
