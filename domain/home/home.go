// Package home holds the rules of homes: complete installations of Posthorn that share the tenants between them
// (docs/adr/0021-homes.md).
package home

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Home is an installation and where the others reach it.
type Home struct {
	Name string
	URL  *url.URL // the internal address of its web processes, without a path
}

// maxName is the length of the longest name of a home.
const maxName = 12

// ValidName reports whether a text can name a home: a lowercase letter, then up to 11 lowercase letters and digits. It
// is a part of API keys and of cookies' names.
func ValidName(text string) bool {
	if text == "" || len(text) > maxName || text[0] < 'a' || text[0] > 'z' {
		return false
	}
	for i := range len(text) {
		if c := text[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// Rule says what ValidName asks for.
const Rule = "a lowercase letter, then up to 11 lowercase letters and digits"

// Parse reads a list of homes: eu1=http://10.0.0.1:8080,eu2=http://10.0.1.1:8080. Each is named once.
func Parse(list string) ([]Home, error) {
	var all []Home
	for _, item := range strings.FieldsFunc(list, func(r rune) bool {
		return r == ',' || r == ' ' || r == '\n' ||
			r == '\t'
	}) {
		name, address, ok := strings.Cut(item, "=")
		if !ok || !ValidName(name) {
			return nil, fmt.Errorf("holds %q. Write name=URL, separated by commas; a name is %s", item, Rule)
		}
		u, err := url.Parse(strings.TrimRight(address, "/"))
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Path != "" ||
			u.RawQuery != "" || u.Fragment != "" {
			return nil, fmt.Errorf("holds %q, whose address is no web address without a path. Write %s=http://10.0.0.1:8080", item, name)
		}
		for _, h := range all {
			if h.Name == name {
				return nil, fmt.Errorf("names %s twice", name)
			}
		}
		all = append(all, Home{Name: name, URL: u})
	}
	if len(all) == 0 {
		return nil, errors.New("names no home. Write name=URL, separated by commas")
	}
	return all, nil
}

// OfKey is the home that an API key names: eu1 for phk_eu1_... and php_eu1_.... Empty: it names none.
func OfKey(key string) string {
	_, rest, ok := strings.Cut(key, "_")
	if !ok {
		return ""
	}
	name, _, ok := strings.Cut(rest, "_")
	if !ok || !ValidName(name) {
		return ""
	}
	return name
}
