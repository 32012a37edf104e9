package egress

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"posthorn/domain/fault"
)

// lines reads a corpus file: one URL a line, its class after a tab.
func lines(t *testing.T, path string, least int) [][2]string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out [][2]string
	for line := range strings.Lines(string(raw)) {
		url, class, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		out = append(out, [2]string{url, class})
	}
	if len(out) < least {
		t.Fatalf("%s has %d cases, want at least %d", path, len(out), least)
	}
	return out
}

type corpus struct {
	URLsRejectControl  []struct{ URL, Class string } `json:"urls_reject_control"`
	URLsTrimOrReject   []struct{ URL, Class string } `json:"urls_trim_or_reject"`
	HeaderNamesReject  []string                      `json:"header_names_reject"`
	HeaderValuesReject []string                      `json:"header_values_reject"`
	HeaderAccept       []map[string]string           `json:"header_accept"`
}

func readCorpus(t *testing.T) corpus {
	t.Helper()
	raw, err := os.ReadFile("testdata/injection-dns-cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var c corpus
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	if len(c.URLsRejectControl) < 7 || len(c.URLsTrimOrReject) < 2 || len(c.HeaderNamesReject) < 20 ||
		len(c.HeaderValuesReject) < 5 || len(c.HeaderAccept) < 4 {
		t.Fatalf("the corpus is not what it was: %+v", c)
	}
	return c
}

// mustRefuse checks that a URL is refused with the code, the field and a sentence for people.
func mustRefuse(t *testing.T, p Policy, raw string) {
	t.Helper()
	u, err := p.CheckURL(raw)
	if err == nil {
		t.Errorf("%.80q was accepted as host %q", raw, u.Host)
		return
	}
	f := fault.As(err)
	if f == nil || u != nil || f.Kind != fault.Invalid || f.Code != "endpoint_url_refused" || len(f.Fields) != 1 || f.Fields[0].Name != "url" ||
		len(f.Detail) < 20 {
		t.Errorf("%.80q: the refusal is %#v with URL %v", raw, err, u)
	}
}

func TestEveryRejectCaseOfTheCorpusIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range lines(t, "testdata/ssrf-reject.txt", 130) {
		t.Run(c[1], func(t *testing.T) {
			t.Parallel()
			mustRefuse(t, Policy{}, c[0])
		})
	}
	for _, c := range readCorpus(t).URLsRejectControl {
		mustRefuse(t, Policy{}, c.URL)
	}
	for _, c := range readCorpus(t).URLsTrimOrReject {
		mustRefuse(t, Policy{}, c.URL)
	}
}

func TestEveryAcceptCaseOfTheCorpusIsAccepted(t *testing.T) {
	t.Parallel()
	for _, c := range lines(t, "testdata/ssrf-accept.txt", 13) {
		u, err := Policy{}.CheckURL(c[0])
		if err != nil {
			t.Errorf("%s: %v", c[0], err)
			continue
		}
		if want := strings.Replace(c[0], "EXAMPLE", "example", 1); u.String() != want {
			t.Errorf("%s became %s", c[0], u)
		}
	}
}

func TestHeadersOfTheCorpus(t *testing.T) {
	t.Parallel()
	c := readCorpus(t)
	for _, name := range c.HeaderNamesReject {
		if checkHeader(name, "v") == nil {
			t.Errorf("the name %q was accepted", name)
		}
	}
	for _, value := range c.HeaderValuesReject {
		if checkHeader("X-A", value) == nil {
			t.Errorf("the value %.20q was accepted", value)
		}
	}
	for _, h := range c.HeaderAccept {
		if err := CheckHeaders(h); err != nil {
			t.Errorf("%v: %v", h, err)
		}
	}
}
