package endpoint

// PublicSignature is which further signatures requests have, made with the tenant's keys: receivers verify them with
// public keys alone.
type PublicSignature string

// The choices.
const (
	NoPublic   PublicSignature = "none"
	RFC9421    PublicSignature = "rfc9421" // an HTTP Message Signature
	V1a        PublicSignature = "v1a"     // one more signature of Standard Webhooks
	BothPublic PublicSignature = "both"
)

// Message reports whether requests have an HTTP Message Signature.
func (p PublicSignature) Message() bool { return p == RFC9421 || p == BothPublic }

// Fits reports whether endpoints of a kind can have it. A feed has no request whose method and URL could be signed.
func (p PublicSignature) Fits(k Kind) bool {
	return p == NoPublic || k == HTTP || k.Pulls() && p == V1a
}

// V1a reports whether requests have a v1a signature with the tenant's key.
func (p PublicSignature) V1a() bool { return p == V1a || p == BothPublic }

// Signed reports whether requests need the tenant's keys.
func (p PublicSignature) Signed() bool { return p.Message() || p.V1a() }

// Label is the choice for people; empty for none.
func (p PublicSignature) Label() string {
	switch p {
	case RFC9421:
		return "HTTP Message Signature (RFC 9421)"
	case V1a:
		return "Standard Webhooks v1a"
	case BothPublic:
		return "HTTP Message Signature (RFC 9421) and Standard Webhooks v1a"
	}
	return ""
}
