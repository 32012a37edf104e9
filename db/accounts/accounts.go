// Package accounts stores who uses Posthorn: people and their sessions, operators, tenants with their members and
// keys, and the mails and notices that go to them.
package accounts

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"posthorn/db"
	"posthorn/db/sql"
	"posthorn/domain/account"
	"posthorn/domain/id"
)

// NewToken returns a secret of 256 random bits as text, for a cookie or a link, and the hash by which it is stored.
func NewToken() (text string, hash []byte) {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails: the program would have crashed
	text = base64.RawURLEncoding.EncodeToString(raw[:])
	return text, HashToken(text)
}

// HashToken is the form in which a token is stored.
func HashToken(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}

// NewSession describes a new session. Exactly one of the three owner ids is set.
type NewSession struct {
	Person, Operator, Link *id.UUID
	Life                   time.Duration
	Pending                bool // the second factor is not confirmed yet
	Address, Agent         string
	By                     *SSOSession // nil: no identity provider started it
}

// SSOSession says which provider started a session.
type SSOSession struct {
	Tenant  *id.UUID // the provider's tenant, the only one that the session opens; nil: the operators' provider
	Subject string
	SID     string        // the provider's id of its own session, or empty
	Stale   time.Duration // how long ago the person authenticated there
}

// StartSession stores a session in the caller's transaction and returns its token. The token itself is not stored.
func StartSession(ctx context.Context, q *sql.Queries, s NewSession) (token string, err error) {
	token, hash := NewToken()
	kind := account.Person
	switch {
	case s.Operator != nil:
		kind = account.Operator
	case s.Link != nil:
		kind = account.Portal
	}
	row := sql.InsertSessionParams{
		ID:         db.NewID(),
		Hash:       hash,
		Kind:       string(kind),
		PersonID:   s.Person,
		OperatorID: s.Operator,
		LinkID:     s.Link,
		Pending:    s.Pending,
		Data:       json.RawMessage("{}"),
		Address:    s.Address,
		Agent:      storedAgent(s.Agent),
		Lives:      int32(s.Life / time.Second),
	}
	if s.By != nil {
		row.SSOTenant, row.SSOSubject, row.Stale = s.By.Tenant, &s.By.Subject, int32(s.By.Stale/time.Second)
		if s.By.SID != "" {
			row.SSOSid = &s.By.SID
		}
	}
	return token, q.InsertSession(ctx, row)
}

// auditPerson writes to the audit log of each of a person's tenants what the person did, or what was tried in their
// name. If the person has no tenant, or is nobody (the zero id), the entry goes to the platform's log. It takes two
// statements in each of these cases, so that the time of a failed sign-in does not tell who has an account.
func auditPerson(ctx context.Context, q *sql.Queries, person id.UUID, address, action string, details any) error {
	tenants, err := q.TenantsOf(ctx, person)
	if err != nil {
		return err
	}
	if len(tenants) == 0 {
		by, what := db.Author{Kind: "system", Address: address}, db.Audited{Action: action, Kind: "person", Details: details}
		if !person.IsZero() {
			by.Kind, by.ID, what.Object = "member", id.Person.Format(person), id.Person.Format(person)
		}
		return db.Audit(ctx, q, by, what)
	}
	entries := sql.InsertMemberAuditsParams{Action: action, Address: address}
	if entries.Details, err = encodeObject(details); err != nil {
		return fmt.Errorf("encode audit details: %w", err)
	}
	for i := range tenants {
		entries.Ids = append(entries.Ids, db.NewID())
		entries.Tenants = append(entries.Tenants, tenants[i].TenantID)
		entries.Members = append(entries.Members, id.Member.Format(tenants[i].MemberID))
	}
	return q.InsertMemberAudits(ctx, entries)
}

// NewLink describes a link that can be used once; see account.…Life.
type NewLink struct {
	Purpose          string
	Person, Operator *id.UUID
	Email            string
	Data             any // what the link's page needs; becomes a JSON object
	Life             time.Duration
}

// The purposes of one-time links.
const (
	LinkSignUp   = "sign_up"
	LinkReset    = "reset_password"
	LinkEmail    = "change_email"
	linkSignIn   = "sign_in"
	LinkOperator = "operator"
	linkSSO      = "sso"
	linkPasskey  = "passkey"
)

// MakeLink stores a one-time link in the caller's transaction and returns its token. The token itself is not stored.
func MakeLink(ctx context.Context, q *sql.Queries, l NewLink) (token string, err error) {
	token, hash := NewToken()
	data := json.RawMessage("{}")
	if l.Data != nil {
		if data, err = json.Marshal(l.Data); err != nil {
			return "", err
		}
	}
	return token, q.InsertLink(ctx, sql.InsertLinkParams{
		Hash:       hash,
		Purpose:    l.Purpose,
		PersonID:   l.Person,
		OperatorID: l.Operator,
		Email:      l.Email,
		Data:       data,
		Lives:      int32(l.Life / time.Second),
	})
}

// Try counts one more try against a limit. key names who tries. It returns how many seconds to wait; 0 means that the
// try is allowed.
func Try(ctx context.Context, q *sql.Queries, l account.Limit, what, whose string) (wait int, err error) {
	row, err := q.CountTry(ctx, limitKey(what, whose), int32(l.Window/time.Second))
	if err != nil || int(row.N) <= l.Tries {
		return 0, err
	}
	return max(1, int(row.SecondsLeft)), nil
}

// Succeeded deletes the counted tries.
func Succeeded(ctx context.Context, q *sql.Queries, what, whose string) error {
	return q.ForgetTries(ctx, limitKey(what, whose))
}

// PasswordTries and CodeTries are what Try counts of sign-ins of one kind of accounts.
func PasswordTries(kind account.Kind) string { return string(kind) + " password" }

// CodeTries counts the tries of second factors; see PasswordTries.
func CodeTries(kind account.Kind) string { return string(kind) + " code" }

func limitKey(what, whose string) []byte { return HashToken(what + "\x00" + whose) }

// storedAgent is the part of a browser's User-Agent header that is stored.
func storedAgent(header string) string { return shortenText(header, 200) }

// shortenText cuts a text from an unauthenticated client to at most n bytes of valid UTF-8 without NUL.
func shortenText(s string, n int) string {
	out := make([]rune, 0, min(len(s), n))
	size := 0
	for _, r := range s {
		if size += len(string(r)); size > n {
			break
		}
		if r >= ' ' && r != 0x7f {
			out = append(out, r)
		}
	}
	return string(out)
}
