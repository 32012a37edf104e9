// Package home holds the rules of homes: complete installations of Posthorn that share the tenants between them
// (docs/adr/0034-moves-by-replication.md).
package home

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Home is an installation and its public address.
type Home struct {
	Name string
	URL  *url.URL // without a path
	Key  string   // a platform key of that home, with which its numbers are read; empty: they are not
}

// Rule says what ValidName asks for.
const Rule = "a lowercase letter, then up to 11 lowercase letters and digits"

var (
	nameRule = regexp.MustCompile(`^[a-z][a-z0-9]{0,11}$`)
	keyRule  = regexp.MustCompile(`^[a-z]+_([a-z][a-z0-9]{0,11})_`)
)

// ValidName reports whether a text can name a home. It is a part of API keys and of cookies' names.
func ValidName(text string) bool { return nameRule.MatchString(text) }

// Parse reads a list of homes: eu1=https://eu1.example.com,eu2=https://eu2.example.com. Each is named once.
func Parse(list string) ([]Home, error) {
	var all []Home
	named := map[string]bool{}
	for _, item := range strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(", \n\t", r) }) {
		name, address, ok := strings.Cut(item, "=")
		if !ok || !ValidName(name) {
			return nil, fmt.Errorf("holds %q. Write name=URL, separated by commas; a name is %s", item, Rule)
		}
		u, err := url.Parse(strings.TrimRight(address, "/"))
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Path+u.RawQuery+u.Fragment != "" {
			return nil, fmt.Errorf("holds %q, whose address is no web address without a path. Write %s=https://%s.example.com", item, name, name)
		}
		if named[name] {
			return nil, fmt.Errorf("names %s twice", name)
		}
		named[name] = true
		all = append(all, Home{Name: name, URL: u})
	}
	if len(all) == 0 {
		return nil, errors.New("names no home. Write name=URL, separated by commas")
	}
	return all, nil
}

// OfKey is the home that an API key names: eu1 for phk_eu1_... and php_eu1_.... Empty: it names none.
func OfKey(key string) string {
	if found := keyRule.FindStringSubmatch(key); found != nil {
		return found[1]
	}
	return ""
}
