package show

// Domain is a domain of mail addresses whose people sign in with a tenant's identity provider.
type Domain struct {
	Domain   string
	Record   string // the name of the TXT record that shows who owns the domain
	Text     string // of that record
	Proof    string // what the text has to contain
	Verified bool
}
