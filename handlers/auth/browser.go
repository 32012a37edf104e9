package auth

import "strings"

// Names that browsers and systems send, the most specific first: most also claim to be others.
var (
	browsers = [][2]string{{"Edg/", "Edge"}, {"OPR/", "Opera"}, {"Firefox/", "Firefox"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"}}
	systems  = [][2]string{{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Windows", "Windows"}, {"Mac OS X", "macOS"}, {"CrOS", "ChromeOS"}, {"Linux", "Linux"}}
)

// browserName describes a browser for people: "Firefox on Windows".
func browserName(agent string) string {
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
	return "Unknown browser"
}
