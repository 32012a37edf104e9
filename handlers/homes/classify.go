package homes

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"strings"

	"posthorn/db/accounts"
	"posthorn/db/seal"
	"posthorn/domain/account"
	"posthorn/domain/delivery"
	"posthorn/domain/httpsig"
	"posthorn/domain/id"
	"posthorn/domain/inbox"
	"posthorn/domain/mcp"
	"posthorn/domain/notice"
)

// What identifies the home of a request.
type kind int

const (
	ofProcess kind = iota // nothing: this process answers
	ofKey
	ofTenant
	ofToken
	ofEmail
	ofDomain    // the domain of the address in a form
	ofFormToken // the token in a form
	ofBrowser   // the browser's cookie
)

// subject is what identifies the home of a request.
type subject struct {
	kind kind
	text string // a key, a tenant's id or external id, a token, or the name of a cookie
	key  string // the API key beside a tenant
	// cookie is the cookie in which a browser stores the home of the request; empty: none.
	cookie string
	any    bool // if that home is down, this one responds
}

// The cookies that name the home of the account, and of the console, that a browser last used. They contain no secret
// and grant nothing.
const (
	homeCookie        = "posthorn-home"
	consoleHomeCookie = "posthorn-console-home"
)

// accountPages are the first segments of paths that belong to a person's account, in any home.
var accountPages = map[string]bool{
	"sign-in":      true,
	"sign-out":     true,
	"sign-up":      true,
	"verify-email": true,
	"reset":        true,
	"change-email": true,
	"invitations":  true,
	"tenants":      true,
	"account":      true,
	"":             true,
}

// classify reads what identifies the home of a request from its path, its key and its query.
func classify(r *http.Request) subject {
	path := r.URL.EscapedPath()
	if rest, ok := strings.CutPrefix(path, "/api/v1/tenants/"); ok {
		return subject{kind: ofTenant, text: segment(rest), key: bearer(r)}
	}
	if rest, ok := strings.CutPrefix(path, "/mcp/"); ok && !accounts.LooksLikeKey(bearer(r)) { // a token of the tenant's product
		return subject{kind: ofTenant, text: segment(rest)}
	}
	for _, root := range []string{"/svix/api/v1/app/", "/svix/api/v1/auth/app-portal-access/", "/mcp/"} {
		if rest, ok := strings.CutPrefix(path, root); ok {
			return subject{kind: ofTenant, text: segment(rest), key: bearer(r)}
		}
	}
	if strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/svix/") || path == "/mcp" {
		return subject{kind: ofKey, text: bearer(r)}
	}
	for _, root := range []string{"/t/", "/sso/", "/shared/", httpsig.KeysRoot, mcp.ResourceRoot} {
		if rest, ok := strings.CutPrefix(path, root); ok {
			return subject{kind: ofTenant, text: segment(rest), cookie: homeCookie}
		}
	}
	if rest, ok := strings.CutPrefix(path, inbox.Path); ok {
		return subject{kind: ofToken, text: segment(rest)}
	}
	if rest, ok := strings.CutPrefix(path, delivery.LinkPath); ok {
		return ofLink(rest)
	}
	return classifyPage(r, path)
}

func classifyPage(r *http.Request, path string) subject {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch {
	case first == "console":
		return subject{kind: ofBrowser, text: consoleHomeCookie}
	case first == "status":
		return subject{kind: ofBrowser, text: homeCookie, any: true}
	case first == "unsubscribe":
		return ofSubscription(path)
	case first == "portal":
		return subject{kind: ofToken, text: r.URL.Query().Get("token")}
	case !accountPages[first]:
		return subject{}
	case r.Method == http.MethodPost && (path == "/sign-in" || path == "/reset"):
		return subject{kind: ofEmail}
	case r.Method == http.MethodPost && path == "/sign-in/sso":
		return subject{kind: ofDomain}
	case r.Method == http.MethodPost && tokenForms[path]:
		return subject{kind: ofFormToken}
	}
	if r.URL.RawQuery != "" {
		query := r.URL.Query()
		if token := query.Get("token"); token != "" {
			return subject{kind: ofToken, text: token, cookie: homeCookie}
		}
		if rest, ok := strings.CutPrefix(query.Get("next"), "/t/"); ok {
			return subject{kind: ofTenant, text: segment(rest), cookie: homeCookie}
		}
	}
	return subject{kind: ofBrowser, text: homeCookie}
}

// tokenForms are the forms behind links in mails.
var tokenForms = map[string]bool{"/invitations/accept": true, "/verify-email": true, "/reset/new": true, "/change-email": true}

// ofSubscription finds the tenant of an unsubscribe link. The tenant's home checks the signature.
func ofSubscription(path string) subject {
	payload, ok := seal.ReadToken(segment(strings.TrimPrefix(path, "/unsubscribe/")))
	if !ok {
		return subject{}
	}
	s, ok := notice.ParseSubscription(payload)
	if !ok {
		return subject{}
	}
	return subject{kind: ofTenant, text: id.Tenant.Format(s.Tenant)}
}

// ofLink finds the tenant of a signed link to an event. The tenant's home checks the signature.
func ofLink(token string) subject {
	text, _ := seal.ReadToken(segment(token))
	if l, ok := delivery.ParseLink(text); ok {
		return subject{kind: ofTenant, text: id.Tenant.Format(l.Tenant)}
	}
	return subject{}
}

// segment is the first part of a path, unescaped.
func segment(path string) string {
	first, _, _ := strings.Cut(path, "/")
	first, _, _ = strings.Cut(first, "?")
	if text, err := url.PathUnescape(first); err == nil {
		return text
	}
	return first
}

// bearer is the key in an Authorization header; empty: none.
func bearer(r *http.Request) string {
	scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(key)
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// maxPeek bounds a form in which an address or a token is searched, as the routes of these forms do.
const maxPeek = 16 << 10

// peek returns a field of a form that has arrived, and keeps the form readable. Empty: the form does not have it.
func peek(r *http.Request, field string) (string, error) {
	body, ok := r.Body.(io.ReadSeeker)
	if !ok {
		return "", nil // there is none
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return "", err
	}
	if _, err := body.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	form, err := url.ParseQuery(string(text))
	return form.Get(field), err
}

// peekEmail returns the address in a form and keeps the form readable. Empty: there is none.
func peekEmail(r *http.Request) (string, error) {
	text, err := peek(r, "email")
	if err != nil || text == "" {
		return "", err
	}
	return account.Email(text)
}
