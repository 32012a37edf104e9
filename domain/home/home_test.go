package home_test

import (
	"strings"
	"testing"
	"time"

	"posthorn/domain/home"
)

func TestHomesAreReadFromAListAndWrongOnesAreNamed(t *testing.T) {
	t.Parallel()
	all, err := home.Parse("eu1=http://10.0.0.1:8080, us=https://us.internal/")
	if err != nil || len(all) != 2 || all[0].Name != "eu1" || all[1].URL.String() != "https://us.internal" {
		t.Fatalf("%v, %v", all, err)
	}
	for list, want := range map[string]string{
		"":                          "names no home",
		"eu1":                       "name=URL",
		"EU=http://a":               "name=URL",
		"eu1=10.0.0.1:80":           "web address",
		"eu1=ftp://a":               "web address",
		"eu1=http://a/path":         "web address",
		"eu1=http://u:p@a":          "web address",
		"eu1=http://a,eu1=http://b": "twice",
		"abcdefghijklm=http://a":    "name=URL",
		"eu_1=http://a":             "name=URL",
		"1eu=http://a":              "name=URL",
	} {
		if _, err := home.Parse(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", list, err, want)
		}
	}
}

func TestAKeyNamesItsHomeOrNone(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"phk_eu1_0123456789": "eu1",
		"php_us_x":           "us",
		"phk_0123456789":     "",
		"phk_EU_x":           "",
		"phk__x":             "",
		"":                   "",
		"phk":                "",
	} {
		if got := home.OfKey(key); got != want {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
	}
}

func TestAPassageHoldsForOneRequestAndOneMinute(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	p := home.Passage{From: "eu1", To: "eu2", At: now.Unix(), Hops: 1, Client: "203.0.113.7", Key: "key_x", Scopes: "events:write"}
	const secret = "a secret of at least 32 characters"
	header := p.Sign(secret, "POST", "/api/v1/events?x=1")
	got, err := home.ReadPassage(header, secret, "eu2", "POST", "/api/v1/events?x=1", now.Add(59*time.Second))
	if err != nil || got != p {
		t.Fatalf("%+v, %v", got, err)
	}
	payload, signature, _ := strings.Cut(header, ".")
	for name, try := range map[string]func() error{
		"another secret": func() error {
			_, err := home.ReadPassage(header, secret+"x", "eu2", "POST", "/api/v1/events?x=1", now)
			return err
		},
		"another path": func() error {
			_, err := home.ReadPassage(header, secret, "eu2", "POST", "/api/v1/keys", now)
			return err
		},
		"another method": func() error {
			_, err := home.ReadPassage(header, secret, "eu2", "GET", "/api/v1/events?x=1", now)
			return err
		},
		"another home": func() error {
			_, err := home.ReadPassage(header, secret, "eu3", "POST", "/api/v1/events?x=1", now)
			return err
		},
		"too old": func() error {
			_, err := home.ReadPassage(header, secret, "eu2", "POST", "/api/v1/events?x=1", now.Add(61*time.Second))
			return err
		},
		"from the future": func() error {
			_, err := home.ReadPassage(header, secret, "eu2", "POST", "/api/v1/events?x=1", now.Add(-61*time.Second))
			return err
		},
		"another payload": func() error {
			q := p
			q.Client = "127.0.0.1"
			other, _, _ := strings.Cut(q.Sign(secret, "POST", "/api/v1/events?x=1"), ".")
			_, err := home.ReadPassage(other+"."+signature, secret, "eu2", "POST", "/api/v1/events?x=1", now)
			return err
		},
		"no signature": func() error {
			_, err := home.ReadPassage(payload, secret, "eu2", "POST", "/api/v1/events?x=1", now)
			return err
		},
		"no hops": func() error {
			q := p
			q.Hops = 0
			_, err := home.ReadPassage(q.Sign(secret, "POST", "/"), secret, "eu2", "POST", "/", now)
			return err
		},
	} {
		if try() == nil {
			t.Errorf("%s passes", name)
		}
	}
}
