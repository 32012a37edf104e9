package homes

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"strings"

	"posthorn/domain/account"
	"posthorn/domain/inbox"
)

// What tells the home of a request.
type kind int

const (
	ofProcess kind = iota // nothing: this process answers
	ofKey
	ofTenant
	ofToken
	ofEmail
	ofBrowser // what the browser's cookie says
)

// subject is what tells the home of a request.
type subject struct {
	kind kind
	text string // a key, a tenant's id or external id, a token, or the name of a cookie
	key  string // the API key beside a tenant
	// cookie is that in which a browser remembers the home of the request; empty: it need not.
	cookie string
}

// The cookies that name the home of the account, and of the console, that a browser last used. They hold no secret and
// open nothing.
const (
	homeCookie        = "posthorn-home"
	consoleHomeCookie = "posthorn-console-home"
)

// accountPages are the first parts of paths that belong to a person's account, in whichever home that is.
var accountPages = map[string]bool{
	"sign-in": true, "sign-out": true, "sign-up": true, "verify-email": true, "reset": true, "change-email": true, "invitations": true, "tenants": true, "account": true, "": true,
}

// classify reads what tells the home of a request from its path, its key and its query.
func classify(r *http.Request) subject {
	path := r.URL.EscapedPath()
	if rest, ok := strings.CutPrefix(path, "/api/v1/tenants/"); ok {
		return subject{kind: ofTenant, text: segment(rest), key: bearer(r)}
	}
	for _, root := range []string{"/svix/api/v1/app/", "/svix/api/v1/auth/app-portal-access/"} {
		if rest, ok := strings.CutPrefix(path, root); ok {
			return subject{kind: ofTenant, text: segment(rest), key: bearer(r)}
		}
	}
	if strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/svix/") {
		return subject{kind: ofKey, text: bearer(r)}
	}
	for _, root := range []string{"/t/", "/sso/"} {
		if rest, ok := strings.CutPrefix(path, root); ok {
			return subject{kind: ofTenant, text: segment(rest), cookie: homeCookie}
		}
	}
	if rest, ok := strings.CutPrefix(path, inbox.Path); ok {
		return subject{kind: ofToken, text: segment(rest)}
	}
	return classifyPage(r, path)
}

func classifyPage(r *http.Request, path string) subject {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch {
	case first == "console":
		return subject{kind: ofBrowser, text: consoleHomeCookie}
	case first == "portal":
		return subject{kind: ofToken, text: r.URL.Query().Get("token")}
	case !accountPages[first]:
		return subject{}
	case r.Method == http.MethodPost && (path == "/sign-in" || path == "/reset"):
		return subject{kind: ofEmail}
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

// maxPeek is how much of a form is read to find an address in it.
const maxPeek = 16 << 10

// peekEmail is the address in a form; the form can be read again. Empty: there is none.
func peekEmail(r *http.Request) (string, error) {
	if r.Body == nil || r.ContentLength > maxPeek {
		return "", nil
	}
	head, err := io.ReadAll(io.LimitReader(r.Body, maxPeek))
	rest := r.Body
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), rest), rest}
	if err != nil {
		return "", err
	}
	form, err := url.ParseQuery(string(head))
	if err != nil {
		return "", err
	}
	return account.Email(form.Get("email"))
}
