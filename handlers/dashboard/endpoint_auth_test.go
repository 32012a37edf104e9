package dashboard_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"posthorn/domain/access"
	"posthorn/handlers/dashboard"
	"posthorn/tools/webtest"
	"posthorn/worker/send"
)

func authForm(change ...string) []string {
	return append([]string{"kind", "http", "url", "https://hooks.acme-logistics.com/in"}, change...)
}

func TestTheAuthenticationOfAnEndpointIsSetAndNeverShown(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner := w.as(access.Owner)
	path := w.add(authForm("auth_type", "basic", "auth_username", "ada", "auth_password", "canary-password", "auth_token", "ignored")...)
	owner.get(path+"/settings").want(http.StatusOK, `value="ada"`, "Leave empty to keep the current one", "user name and password").lacks("canary", "ignored").keep("auth-basic")
	w.as(access.Viewer).get(path + "/settings").want(http.StatusOK).lacks("canary")
	owner.post(path+"/settings", newForm(authForm("auth_type", "basic", "auth_username", "ada", "description", "x")...)).want(http.StatusSeeOther)
	owner.post(path+"/settings", newForm(authForm("auth_type", "basic", "auth_username", "bob")...)).
		want(http.StatusBadRequest, "Send password again", `href="#f-auth_password"`).lacks("canary").keep("auth-secret-needed")
	owner.post(path+"/settings", newForm(authForm("url", "https://evil.acme-logistics.com/", "auth_type", "basic", "auth_username", "ada")...)).
		want(http.StatusBadRequest, "Send password again").lacks("canary")
	oauth := []string{"auth_type", "oauth2", "auth_token_url", "https://login.acme-logistics.com/token", "auth_client_id", "posthorn", "auth_client_auth", "client_secret_post", "auth_client_secret", "canary-secret", "auth_scopes", "a b"}
	owner.post(path+"/settings", newForm(authForm(oauth...)...)).want(http.StatusSeeOther)
	owner.get(path+"/settings").want(http.StatusOK, "https://login.acme-logistics.com/token", `value="a b"`, "OAuth 2.0").lacks("canary").keep("auth-oauth2")
	owner.post(path+"/settings", newForm(authForm(append(oauth, "auth_token_url", "https://10.0.0.1/", "auth_client_id", "")...)...)).
		want(http.StatusBadRequest, `href="#f-auth_client_id"`).lacks("canary").keep("auth-wrong")
	owner.post(path+"/settings", newForm(authForm("auth_type", "")...)).want(http.StatusSeeOther)
	owner.get(path+"/settings").want(http.StatusOK, "signature only")
}

func TestAnAuthorityOfTheReceiverIsSetInTheForm(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../domain/endpoint/testdata/authority.pem")
	if err != nil {
		t.Fatal(err)
	}
	w := newDesk(t)
	owner := w.as(access.Owner)
	path := w.add(authForm("auth_type", "", "tls_ca_certificate", strings.ReplaceAll(string(text), "\n", "\r\n"))...)
	owner.get(path+"/settings").want(http.StatusOK, strings.Split(string(text), "\n")[1], "own authority").keep("tls-ca")
	owner.post(path+"/settings", newForm(authForm("auth_type", "", "tls_client_certificate", string(text))...)).
		want(http.StatusBadRequest, "private key of the certificate", `href="#f-tls_private_key"`).keep("tls-wrong")
	owner.post(path+"/settings", newForm(authForm("auth_type", "")...)).want(http.StatusSeeOther)
	owner.get(path + "/settings").want(http.StatusOK).lacks("BEGIN CERTIFICATE-----\nM")
}

func TestTheFormsTestAConnectionWithoutSavingIt(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	w.engine = webtest.Serve(w.Config(time.Now, base), dashboard.Routes(dashboard.Deps{
		DB:      w.db,
		Keys:    w.ring,
		BaseURL: base,
		Log:     w.Logger,
		Now:     time.Now,
		Egress:  w.Egress,
		Tester:  send.NewTester(w.Egress),
	}))
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") != "canary-key" {
			out.WriteHeader(http.StatusForbidden)
		}
	}))
	t.Cleanup(server.Close)
	owner := w.as(access.Owner)
	form := []string{"url", server.URL + "/in", "auth_type", "api_key", "auth_header", "X-Api-Key", "auth_key"}
	owner.post(w.root+"/endpoints/test-connection", newForm(authForm(append(form, "canary-key")...)...)).
		want(http.StatusOK, "The connection works", "Connection", "skipped", "returned 200").lacks("canary").keep("connection-works")
	path := w.add(authForm(append(form, "other-key")...)...)
	owner.get(path+"/settings").want(http.StatusOK, "Test connection")
	owner.post(path+"/test-connection", newForm(authForm(append(form, "")...)...)).want(http.StatusOK, "The connection failed", "returned 403").lacks("other-key").keep("connection-fails")
	owner.post(path+"/test-connection", newForm(authForm("url", "https://10.0.0.1/", "auth_type", "")...)).want(http.StatusOK, "wasn&#39;t tested", `href="#f-url"`).keep("connection-wrong")
	w.as(access.Viewer).post(path+"/test-connection", newForm(authForm(form...)...)).want(http.StatusForbidden)
}

func TestACertificateSigningRequestIsMadeAndShown(t *testing.T) {
	t.Parallel()
	w := newDesk(t)
	owner := w.as(access.Owner)
	path := w.add(authForm("auth_type", "")...)
	owner.get(path+"/settings").want(http.StatusOK, "Create request").lacks("BEGIN CERTIFICATE REQUEST")
	owner.post(path+"/certificate-request", newForm("common_name", "Acme")).want(http.StatusSeeOther)
	owner.get(path+"/settings").want(http.StatusOK, "BEGIN CERTIFICATE REQUEST").lacks("PRIVATE KEY-----\nM").keep("certificate-request")
	w.as(access.Viewer).get(path + "/settings").want(http.StatusOK).lacks("Create request")
}
