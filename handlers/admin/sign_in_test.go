package admin_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/sql"
	"posthorn/domain/account"
	"posthorn/handlers/admin"
	"posthorn/handlers/auth"
	"posthorn/tools/dbtest"
	"posthorn/tools/webtest"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

const password = "correct horse battery staple"

// world is the console with its own database, and one operator's browser.
type world struct {
	*webtest.World
	t       *testing.T
	db      *db.DB
	engine  http.Handler
	ahead   time.Duration // of the real clock
	cookies map[string]*http.Cookie
	link    string // the token of the operator's first link
}

func newWorld(t *testing.T, base string, change ...func(*admin.Deps)) *world {
	t.Helper()
	shared := webtest.New(t)
	w := &world{World: shared, t: t, db: shared.DB, cookies: map[string]*http.Cookie{}}
	now := func() time.Time { return time.Now().Add(w.ahead) }
	deps := admin.Deps{
		DB:      w.db,
		Keys:    w.Ring,
		Console: auth.Console{Development: strings.HasPrefix(base, "http://127.")},
		Log:     w.Logger,
		Now:     now,
	}
	for _, c := range change {
		c(&deps)
	}
	w.engine = webtest.Serve(w.Config(now, base), admin.Routes(deps))
	w.Console(func(ctx context.Context, q *db.Tx) (err error) {
		operatorID := db.NewID()
		if _, err := q.InsertOperator(ctx, sql.InsertOperatorParams{
			ID:        operatorID,
			Email:     "op@example.com",
			CreatedAt: operatorID.Time(),
		}); err != nil {
			return err
		}
		w.link, err = accounts.MakeLink(ctx, q, accounts.NewLink{
			Purpose:  accounts.LinkOperator,
			Operator: &operatorID,
			Email:    "op@example.com",
			Life:     account.OperatorLife,
		})
		return err
	})
	return w
}

func (w *world) send(method, path string, form url.Values) *httptest.ResponseRecorder {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), method, path, strings.NewReader(form.Encode()))
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, c := range w.cookies {
		r.AddCookie(c)
	}
	recorder := httptest.NewRecorder()
	w.engine.ServeHTTP(recorder, r)
	for _, c := range recorder.Result().Cookies() {
		if c.MaxAge < 0 {
			delete(w.cookies, c.Name)
		} else {
			w.cookies[c.Name] = c
		}
	}
	return recorder
}

func (w *world) want(method, path string, form url.Values, status int, part string) string {
	w.t.Helper()
	got := w.send(method, path, form)
	where := got.Header().Get("Location")
	if got.Code != status || status == http.StatusSeeOther && where != part || status != http.StatusSeeOther &&
		!strings.Contains(got.Body.String(), part) {
		w.t.Fatalf("%s %s: %d %q, want %d %q: %s", method, path, got.Code, where, status, part, got.Body)
	}
	return got.Body.String()
}

func TestAnOperatorNeedsASecondFactorAndACookieOfTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "https://hooks.example.com")
	w.want("GET", "/console", nil, 303, "/console/sign-in?next=%2Fconsole")
	w.want("GET", "/console/setup?token="+w.link, nil, 200, "op@example.com")
	w.want("POST", "/console/setup", url.Values{"token": {w.link}, "password": {"password1"}}, 400, "too common")
	w.want("POST", "/console/setup", url.Values{"token": {w.link}, "password": {password}}, 303, "/console/setup/totp")
	w.want("POST", "/console/setup", url.Values{"token": {w.link}, "password": {password}}, 410, "link_used")
	w.want("GET", "/console", nil, 303, "/console/sign-in?next=%2Fconsole") // the password alone opens nothing
	seed := regexp.MustCompile(`id="seed">([A-Z2-7 ]{39})<`).FindStringSubmatch(w.want("GET", "/console/setup/totp", nil, 200, "<svg"))
	code := func() string {
		text, err := totp.GenerateCode(strings.ReplaceAll(seed[1], " ", ""), time.Now().Add(w.ahead))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	w.want("POST", "/console/setup/totp", url.Values{"code": {"12"}}, 400, "the app&#39;s current code")
	used := code() // this very code: the next half-minute has another
	w.want("POST", "/console/setup/totp", url.Values{"code": {used}}, 303, "/console/account/recovery-codes")
	w.want("GET", "/console/account/recovery-codes", nil, 200, "recovery codes")
	w.want("GET", "/console/account/recovery-codes", nil, 303, "/console")
	w.want("GET", "/console", nil, 200, "op@example.com")
	if c := w.cookies["__Host-posthorn-console"]; len(w.cookies) != 1 || c == nil || !c.Secure || !c.HttpOnly {
		t.Errorf("%v", w.cookies)
	}
	w.want("POST", "/console/sign-out", nil, 303, "/console/sign-in")
	w.want("POST", "/console/sign-in", url.Values{"email": {"op@example.com"}, "password": {"wrong"}}, 400, "is incorrect")
	w.want("POST", "/console/sign-in", url.Values{"email": {"nobody@example.com"}, "password": {"wrong"}}, 400, "is incorrect")
	w.want("POST", "/console/sign-in", url.Values{"email": {"op@example.com"}, "password": {password}}, 303, "/console/sign-in/code")
	w.want("POST", "/console/sign-in/code", url.Values{"code": {used}}, 400, "already used")
	// nobody sets up another one with the password alone
	w.want("GET", "/console/setup/totp", nil, 303, "/console/sign-in")
	w.ahead += 30 * time.Second
	w.want("POST", "/console/sign-in/code", url.Values{"code": {code()}}, 303, "/console")
	w.want("GET", "/console", nil, 200, "op@example.com")
}

func TestInDevelopmentThePasswordIsEnough(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "http://127.0.0.1:8080")
	w.want("POST", "/console/setup", url.Values{"token": {w.link}, "password": {password}}, 303, "/console")
	w.want("GET", "/console", nil, 200, "op@example.com")
}
