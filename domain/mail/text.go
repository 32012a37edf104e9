package mail

import (
	"regexp"
	"strings"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"

	"posthorn/domain/characters"
	"posthorn/domain/words"
)

// mostText bounds a text of a tenant in a mail, in characters.
const mostText = 40

// TenantText is a text that a tenant or its endpoints chose, as it appears in a mail to others: on one line, without a
// link, and short, so that nobody's words pass for Posthorn's own. Every such text in a mail goes through it: names of
// tenants and people, descriptions, event types, and responses.
func TenantText(text string) string {
	return words.Short(Unlinked(text), mostText)
}

// TenantHost is the host of a URL that a tenant chose, on one line and short. It is a name that resolves, which leaves
// no room for a sentence, and people have to recognize their own endpoint: its dots stay.
func TenantHost(url string) string {
	_, rest, found := strings.Cut(url, "://")
	if !found {
		rest = url
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return words.Short(strings.Join(strings.Fields(characters.Cleaned(rest[strings.LastIndexByte(rest, '@')+1:])), " "), mostText)
}

var dotted = regexp.MustCompile(`[\pL\pN_-]+(?:[.。．｡][\pL\pN_-]+)+`)

// Unlinked is a text on one line in which a mail program finds no link: a web address is left out, and the dots of a
// domain are in brackets. An event type such as order.paid stays as it is, unless it is a domain as well.
func Unlinked(text string) string {
	words := strings.Fields(characters.Cleaned(text))
	for i, word := range words {
		if strings.Contains(word, "://") || strings.Contains(strings.ToLower(word), "www.") {
			words[i] = "[link]"
			continue
		}
		words[i] = dotted.ReplaceAllStringFunc(word, func(name string) string {
			if !strings.Contains(word, name+"/") && !isDomain(name) {
				return name
			}
			return strings.NewReplacer(".", "[.]", "。", "[.]", "．", "[.]", "｡", "[.]").Replace(name)
		})
	}
	return strings.Join(words, " ")
}

// isDomain reports whether a name can be registered or reserved as a domain: it ends as domains do.
func isDomain(name string) bool {
	name = strings.NewReplacer("。", ".", "．", ".", "｡", ".").Replace(strings.ToLower(name))
	if ascii, err := idna.ToASCII(name); err == nil {
		name = ascii // as the list of suffixes has them
	}
	_, known := publicsuffix.PublicSuffix(name)
	return known || strings.HasSuffix(name, ".example")
}
