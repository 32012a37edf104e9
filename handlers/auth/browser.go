package auth

import "strings"

// What browsers and systems say of themselves, the more particular first: most claim to be several others as well.
var (
	browsers = [][2]string{{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"}}
	systems  = [][2]string{{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Windows", "Windows"}, {"Mac OS X", "macOS"}, {"CrOS", "ChromeOS"}, {"Linux", "Linux"}}
)

// Browser is a browser's description of itself in the words of people: "Firefox on Windows".
func Browser(agent string) string {
	find := func(names [][2]string) string {
		for _, n := range names {
			if strings.Contains(agent, n[0]) {
				return n[1]
			}
		}
		return ""
	}
	name, system := find(browsers), find(systems)
	switch {
	case name != "" && system != "":
		return name + " on " + system
	case name != "" || system != "":
		return name + system
	}
	return "unknown browser"
}
