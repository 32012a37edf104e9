package emails_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"

	"posthorn/domain/characters"
	"posthorn/domain/mail"
	"posthorn/domain/notice"
	"posthorn/views/emails"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestLettersReadAsTheyShould(t *testing.T) {
	t.Parallel()
	all := samples(t)
	if files, _ := filepath.Glob("testdata/*.txt"); len(files) != len(all) && !*update {
		t.Errorf("%d golden files for %d letters", len(files), len(all))
	}
	for name, l := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := "Subject: " + l.Subject + "\nPreview: " + l.Preview + "\n\n" + l.Text()
			path := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil || got != string(want) {
				t.Errorf("%v; run with -update and look at the difference. Got:\n%s", err, got)
			}
			for line := range strings.Lines(l.Text()) {
				if utf8.RuneCountInString(line) > 79 && !strings.Contains(line, "://") && !strings.HasPrefix(line, "    ") {
					t.Errorf("a long line: %s", line)
				}
			}
		})
	}
}

// The HTML shows the content of the text, and loads nothing: no image, no script, no style sheet.
func TestHTMLAndTextSayTheSame(t *testing.T) {
	t.Parallel()
	for name, l := range samples(t) {
		var out bytes.Buffer
		if err := emails.Page(l).Render(t.Context(), &out); err != nil {
			t.Fatal(err)
		}
		root, err := html.Parse(&out)
		if err != nil {
			t.Fatal(err)
		}
		var words, links []string
		for n := range root.Descendants() {
			switch {
			case n.Type == html.TextNode && n.Parent.Data != "style" && n.Parent.Data != "title":
				words = append(words, strings.Fields(n.Data)...)
			case n.Type != html.ElementNode:
			case slices.Contains([]string{"img", "script", "link", "iframe", "form", "object", "svg", "video"}, n.Data):
				t.Errorf("%s holds <%s>", name, n.Data)
			case n.Data == "a":
				links = append(links, attr(n, "href"))
			}
			if attr(n, "src") != "" || strings.Contains(attr(n, "style"), "url(") || attr(n, "onclick") != "" {
				t.Errorf("%s fetches or runs something", name)
			}
		}
		shown := strings.Join(words, " ")
		want := []string{l.Heading, l.Why}
		var wantLinks []string
		for _, b := range l.Body {
			want = append(want, b.Text, b.Code)
			want = append(want, b.List...)
			for _, f := range b.Facts {
				want = append(want, f.Name, f.Value)
			}
			if b.Button != nil {
				want = append(want, b.Button.Text)
				wantLinks = append(wantLinks, b.Button.URL)
			}
		}
		for _, link := range []string{l.Docs.URL, l.Preferences, l.Unsubscribe} {
			if link != "" && !slices.Contains(wantLinks, link) {
				wantLinks = append(wantLinks, link)
			}
		}
		for _, w := range want {
			if !strings.Contains(shown, strings.Join(strings.Fields(w), " ")) {
				t.Errorf("%s does not show %q", name, w)
			}
		}
		if !slices.Equal(links, wantLinks) {
			t.Errorf("%s links to %q, want %q", name, links, wantLinks)
		}
		for _, link := range links {
			if !strings.HasPrefix(link, "https://posthorn.example/") || !strings.Contains(l.Text(), link) {
				t.Errorf("%s: the link %s", name, link)
			}
		}
	}
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func TestEveryKindHasALetter(t *testing.T) {
	t.Parallel()
	for _, k := range notice.Kinds() {
		l, err := emails.Notice(mail.NoticeData{
			TenantName:  "Acme",
			Kind:        string(k),
			Details:     json.RawMessage("{}"),
			Unsubscribe: "https://posthorn.example/u",
		})
		if err != nil || l.Subject == "" || l.Heading == "" || l.Unsubscribe == "" {
			t.Errorf("%s without details: %+v, %v", k, l, err)
		}
	}
	if _, err := emails.Notice(mail.NoticeData{Kind: "junk", Details: json.RawMessage("{}")}); err == nil {
		t.Error("there is a letter for junk")
	}
	if _, err := emails.Notice(mail.NoticeData{Kind: "digest", Details: json.RawMessage("[1]")}); err == nil {
		t.Error("details that are no object make a letter")
	}
}

// aboutNoEndpoint are the kinds of mails that concern no endpoint.
var aboutNoEndpoint = []notice.Kind{
	notice.KeyCreated, notice.QuotaWarning, notice.QuotaReached, notice.TenantSuspended, notice.TenantResumed,
	notice.DispatchPaused, notice.DispatchResumed, notice.SourceFailing,
}

// A mail about an endpoint names it, links to it, and has a subject that is shown as written, whatever the names of the
// tenant, the endpoint and the event type are. A new kind must do so, or be listed above.
func TestEveryMailAboutAnEndpointNamesAndLinksIt(t *testing.T) {
	t.Parallel()
	const (
		ep, host  = "ep_01jd0000000000000000000000", "hooks.acme.example"
		dashboard = "https://posthorn.example/t/ten_01jd0000000000000000000000"
		evil      = "Orders\u202e\r\nBcc: all@example.com\u200b"
	)
	details, err := json.Marshal(map[string]any{
		"endpoint":    ep,
		"url":         "https://" + host + "/in",
		"description": evil,
		"event_type":  evil,
		"day":         "2031-03-09",
		"severity":    "critical",
		"alerts":      []notice.DigestAlert{{Endpoint: ep, Name: evil, Severity: "critical", Code: "endpoint_failing", Detail: "It fails.", Action: "Check its logs."}},
		"endpoints": []notice.DigestEndpoint{
			{Endpoint: ep, URL: "https://" + host + "/in", Status: "failing", Failed: 3, Attempts: 4},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range notice.Kinds() {
		l, err := emails.Notice(mail.NoticeData{
			TenantName: "Ac\u2066me\r\nBcc: all@example.com",
			Kind:       string(k),
			At:         at,
			Details:    details,
			Dashboard:  dashboard,
		})
		if err != nil {
			t.Fatalf("%s: %v", k, err)
		}
		if !characters.Line(l.Subject) {
			t.Errorf("%s: the subject is %+q", k, l.Subject)
		}
		if slices.Contains(aboutNoEndpoint, k) {
			continue
		}
		for _, want := range []string{"hooks.acme.example", dashboard + "/endpoints/" + ep} {
			if !strings.Contains(l.Text(), want) {
				t.Errorf("%s does not say %s:\n%s", k, want, l.Text())
			}
		}
	}
	alert := emails.OperatorAlert(mail.OperatorAlertData{What: "An endpoint of " + evil + " was disabled"})
	if !characters.Line(alert.Subject) {
		t.Errorf("an alert: the subject is %+q", alert.Subject)
	}
	for _, l := range []emails.Letter{
		emails.Invitation(mail.InvitationData{Tenant: evil, By: evil}),
		emails.AccountExists(mail.AccountExistsData{Name: evil, Tenant: evil}),
	} {
		if !characters.Line(l.Subject) {
			t.Errorf("the subject is %+q", l.Subject)
		}
	}
}

// Texts from receivers and members are shown unchanged, and on one line in the subject.
func TestForeignTextStaysText(t *testing.T) {
	t.Parallel()
	details, _ := json.Marshal(notice.EndpointDetails{
		URL:         "https://x.example",
		Description: "<b>a</b>\r\nBcc: all@example.com",
		LastExcerpt: "<script>alert(1)</script>\xff",
		LastStatus:  500,
	})
	l, err := emails.Notice(mail.NoticeData{TenantName: "A\nB", Kind: "endpoint.disabled", Details: details, Dashboard: "https://posthorn.example/t/x"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := emails.Page(l).Render(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(l.Subject, "\r\n") || strings.Contains(out.String(), "<script>alert") || strings.Contains(out.String(), "<b>a") ||
		!strings.Contains(out.String(), "&lt;script&gt;") || !utf8.ValidString(out.String()) {
		t.Errorf("%q\n%s", l.Subject, &out)
	}
}

// Nobody can use a mail of Posthorn to bring their own words with a link to others.
func TestNoMailCarriesATenantsLinkOrSpeech(t *testing.T) {
	t.Parallel()
	const speech = "Your account is locked, open https://evil.example/login or evil.com within the hour, or you lose all of it"
	const dashboard = "https://posthorn.example/t/ten_01jd0000000000000000000000"
	details, err := json.Marshal(map[string]any{
		"endpoint":     "ep_1",
		"url":          "https://hooks.acme.example/login",
		"description":  speech,
		"event_type":   "evil.com",
		"name":         speech,
		"by":           speech,
		"last_excerpt": speech,
		"day":          "2031-03-09",
		"severity":     "critical",
		"reason":       "unhealthy",
		"alerts":       []notice.DigestAlert{{Endpoint: "ep_1", Name: speech, Detail: speech + " fails.", Action: "Check the logs of " + speech}},
		"findings":     []notice.DigestFinding{{Detail: speech + " was disabled."}},
		"endpoints":    []notice.DigestEndpoint{{Endpoint: "ep_1", Name: speech, URL: "https://hooks.acme.example/login", Failed: 3, Attempts: 4}},
	})
	if err != nil {
		t.Fatal(err)
	}
	link := "https://posthorn.example/x"
	letters := map[string]emails.Letter{
		"invitation":      emails.Invitation(mail.InvitationData{Tenant: speech, By: speech, Role: "viewer", Link: link, Expires: at}),
		"confirm_contact": emails.ConfirmContact(mail.ConfirmContactData{Tenant: speech, Link: link}),
		"account_exists":  emails.AccountExists(mail.AccountExistsData{Name: speech, Tenant: speech, Link: link, Reset: link}),
		"verify_address":  emails.VerifyAddress(mail.VerifyAddressData{Name: speech, Link: link, Expires: at}),
		"reset_password":  emails.ResetPassword(mail.ResetPasswordData{Name: speech, Link: link, Expires: at}),
		"sign_in_alert":   emails.SignInAlert(mail.SignInAlertData{Name: speech, At: at, Browser: speech}),
	}
	for _, k := range notice.Kinds() {
		if letters[string(k)], err = emails.Notice(mail.NoticeData{
			TenantName: speech,
			Kind:       string(k),
			At:         at,
			Details:    details,
			Dashboard:  dashboard,
		}); err != nil {
			t.Fatalf("%s: %v", k, err)
		}
	}
	for name, l := range letters {
		var page bytes.Buffer
		if err := emails.Page(l).Render(t.Context(), &page); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{l.Subject, l.Text(), page.String()} {
			if strings.Contains(text, "evil.") || strings.Contains(text, "within the hour") {
				t.Errorf("%s carries the tenant's words:\n%s", name, text)
			}
		}
	}
}

// Who is made an operator reads who did it and where, and nothing of a sign-up that they know nothing of.
func TestAnOperatorsMailSaysWhoMadeThemOneAndWhere(t *testing.T) {
	t.Parallel()
	d := mail.OperatorAccessData{Server: "posthorn.example", By: "olga", New: true, Link: "https://posthorn.example/console/setup?token=x", Expires: at}
	l := emails.OperatorAccess(d)
	d.New = false
	again := emails.OperatorAccess(d)
	for _, c := range []struct {
		letter emails.Letter
		want   string
	}{{l, "olga made you an operator of the Posthorn server posthorn.example"}, {again, "olga created a new link for you on the server posthorn.example"}} {
		if text := c.letter.Text(); !strings.Contains(text, c.want) || !strings.Contains(text, d.Link) || strings.Contains(text, "signed up") || strings.Contains(text, "Confirm") {
			t.Errorf("%s:\n%s", c.letter.Subject, text)
		}
	}
	if l.Subject != "You're now an operator of posthorn.example" || again.Subject == l.Subject {
		t.Errorf("the subjects are %q and %q", l.Subject, again.Subject)
	}
}
