package home_test

import (
	"strings"
	"testing"

	"posthorn/domain/home"
)

func TestHomesAreReadFromAListAndWrongOnesAreNamed(t *testing.T) {
	t.Parallel()
	all, err := home.Parse("eu1=http://10.0.0.1:8080, us=https://us.example.com/")
	if err != nil || len(all) != 2 || all[0].Name != "eu1" || all[1].URL.String() != "https://us.example.com" {
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
