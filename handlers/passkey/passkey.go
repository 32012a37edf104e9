// Package passkey registers passkeys and verifies sign-ins with them (W3C Web Authentication, level 3).
package passkey

import (
	"encoding/json"
	"errors"
	"net/netip"
	"net/url"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/domain/account"
	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/handlers"
)

// Service registers and verifies passkeys for one kind of account on one host. A nil Service offers no passkeys.
type Service struct {
	db   *db.DB
	web  *webauthn.WebAuthn
	kind account.Kind
}

// New creates a service for the accounts of a kind, whose pages are at base. Passkeys belong to a host name: a server
// that is reached by an IP address has none (nil), except for localhost on the machine itself.
func New(d *db.DB, base string, kind account.Kind) *Service {
	u, err := url.Parse(base)
	if err != nil {
		return nil
	}
	host, origin := u.Hostname(), base
	if _, err := netip.ParseAddr(host); err == nil {
		if !handlers.Development(base) {
			return nil
		}
		host = "localhost"
		origin = u.Scheme + "://localhost"
		if u.Port() != "" {
			origin += ":" + u.Port()
		}
	}
	web, err := webauthn.New(&webauthn.Config{RPID: host, RPDisplayName: "Posthorn", RPOrigins: []string{origin}})
	if err != nil {
		return nil
	}
	return &Service{db: d, web: web, kind: kind}
}

// Errors of passkeys.
var (
	// ErrRejected is for a passkey that was not accepted, for any reason.
	ErrRejected = fault.New(fault.Invalid, "passkey_rejected", "This passkey wasn't accepted. It may have been removed from your account. Sign in in another way.")
	// errCeremony is for a form whose ceremony was started elsewhere or has ended.
	errCeremony = fault.New(fault.Invalid, "passkey_expired", "This took too long, or was started in another browser. Try again.")
	errNone     = fault.New(fault.NotFound, "passkey_unavailable", "This server has no host name, which passkeys need. Sign in in another way.")
)

// owner is an account in the library's form. Its handle names the kind, because people and operators can share a host.
type owner struct {
	handle      []byte
	name        string
	credentials []webauthn.Credential
}

func (o *owner) WebAuthnID() []byte                         { return o.handle }
func (o *owner) WebAuthnName() string                       { return o.name }
func (o *owner) WebAuthnDisplayName() string                { return o.name }
func (o *owner) WebAuthnCredentials() []webauthn.Credential { return o.credentials }

func (s *Service) owner(user account.User, keys ...account.Passkey) (*owner, error) {
	o := &owner{handle: append([]byte(string(s.kind)+":"), user.ID[:]...), name: user.Email}
	if s.kind == account.Operator {
		o.name += " (operator console)"
	}
	for _, key := range keys {
		var c webauthn.Credential
		if err := json.Unmarshal(key.State, &c); err != nil {
			return nil, err
		}
		o.credentials = append(o.credentials, c)
	}
	return o, nil
}

// options is what a page's script needs for the browser's passkey request.
type options struct {
	Token     string `json:"token"` // for the form that follows
	PublicKey any    `json:"publicKey"`
}

// remember starts a ceremony in this browser and responds with its options.
func (s *Service) remember(c *handlers.Call, session *webauthn.SessionData, publicKey any) error {
	data, err := json.Marshal(session)
	if err != nil {
		return err
	}
	token, err := accounts.StartPasskey(
		c.Ctx(),
		s.db,
		accounts.PasskeyCeremony{Browser: accounts.HashToken(c.StartFlow()), Kind: s.kind, Session: data},
	)
	if err != nil {
		return err
	}
	return c.Answer(200, options{Token: token, PublicKey: publicKey})
}

// ForSignIn responds with the options of a sign-in. The browser offers its passkeys for this host, and the
// authenticator verifies the person, so that a passkey is both factors.
func (s *Service) ForSignIn(c *handlers.Call) error {
	if s == nil {
		return errNone
	}
	assertion, session, err := s.web.BeginDiscoverableLogin(webauthn.WithUserVerification(
		protocol.VerificationRequired))
	if err != nil {
		return err
	}
	return s.remember(c, session, assertion.Response)
}

// ForNew responds with the options of a registration for an account.
func (s *Service) ForNew(c *handlers.Call, user account.User) error {
	if s == nil {
		return errNone
	}
	keys, err := accounts.Passkeys(c.Ctx(), s.db, user.ID)
	if err != nil {
		return err
	}
	who, err := s.owner(user, keys...)
	if err != nil {
		return err
	}
	creation, session, err := s.web.BeginRegistration(who,
		webauthn.WithAuthenticatorSelection(protocol.AuthenticatorSelection{
			ResidentKey:        protocol.ResidentKeyRequirementRequired,
			RequireResidentKey: protocol.ResidentKeyRequired(),
			UserVerification:   protocol.VerificationRequired,
		}),
		webauthn.WithExclusions(webauthn.Credentials(who.credentials).CredentialDescriptors()),
		webauthn.WithConveyancePreference(protocol.PreferNoAttestation))
	if err != nil {
		return err
	}
	return s.remember(c, session, creation.Response)
}

// session uses up the ceremony of a form.
func (s *Service) session(c *handlers.Call, token string) (session webauthn.SessionData, err error) {
	if s == nil {
		return session, errNone
	}
	data, err := accounts.TakePasskey(c.Ctx(), s.db, token, c.Flow(), s.kind)
	if fault.Is(err, fault.ErrNotFound.Code) {
		return session, errCeremony
	}
	if err != nil {
		return session, err
	}
	return session, json.Unmarshal(data, &session)
}

// Register verifies a form with a new passkey of an account.
func (s *Service) Register(c *handlers.Call, form url.Values, user account.User) (p account.Passkey, err error) {
	session, err := s.session(c, form.Get("token"))
	if err != nil {
		return p, err
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes([]byte(form.Get("credential")))
	if err != nil {
		return p, ErrRejected
	}
	who, err := s.owner(user)
	if err != nil {
		return p, err
	}
	credential, err := s.web.CreateCredential(who, session, parsed)
	if err != nil {
		return p, ErrRejected
	}
	p.Credential = credential.ID
	p.State, err = json.Marshal(credential)
	return p, err
}

// Verify verifies a form with a sign-in and returns whose passkey it is. An unknown or removed passkey, and a copy of
// one, is ErrRejected.
func (s *Service) Verify(c *handlers.Call, form url.Values) (of id.UUID, err error) {
	session, err := s.session(c, form.Get("token"))
	if err != nil {
		return of, err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes([]byte(form.Get("credential")))
	if err != nil {
		return of, ErrRejected
	}
	key, err := accounts.FindPasskey(c.Ctx(), s.db, parsed.RawID, s.kind)
	if fault.Is(err, fault.ErrNotFound.Code) {
		return of, ErrRejected
	}
	if err != nil {
		return of, err
	}
	of = key.Owner
	who, err := s.owner(account.User{ID: of}, key)
	if err != nil {
		return of, err
	}
	credential, err := s.web.ValidateDiscoverableLogin(func([]byte, []byte) (webauthn.User, error) { return who, nil }, session, parsed)
	if err != nil || credential.Authenticator.CloneWarning {
		return of, ErrRejected
	}
	data, err := json.Marshal(credential)
	if err != nil {
		return of, err
	}
	return of, accounts.UsePasskey(c.Ctx(), s.db, key.ID, data)
}

// IsRejected reports whether a person can try again.
func IsRejected(err error) bool {
	return errors.Is(err, ErrRejected) || errors.Is(err, errCeremony) || errors.Is(err, errNone)
}
