// Package audit has the words for what the audit log holds.
package audit

import "strings"

// past are the verbs of actions that are not in the past tense themselves, by what comes behind the object's name.
var past = map[string]string{
	"archive":           "archived",
	"cancel":            "canceled",
	"check_secret":      "secret checked",
	"continue":          "continued",
	"create":            "created",
	"delete":            "deleted",
	"discard":           "discarded",
	"end":               "ended",
	"end_secret":        "secret ended",
	"expunge":           "expunged",
	"extend_secret":     "secret extended",
	"inbox_answer":      "inbox response changed",
	"inbox_empty":       "inbox emptied",
	"mute":              "alerts muted",
	"pause":             "paused",
	"replay":            "replayed",
	"replay_again":      "replayed again",
	"resume":            "resumed",
	"retry":             "retried",
	"retry_now":         "retried now",
	"rotate":            "rotated",
	"rotate_secret":     "secret rotated",
	"share":             "shared",
	"share_open":        "link opened",
	"share_revoke":      "link revoked",
	"start":             "started",
	"switch_secret":     "secret switched",
	"test":              "tested",
	"unarchive":         "unarchived",
	"unmute":            "alerts unmuted",
	"update":            "updated",
	"verify":            "verification requested",
	"acting":            "acting allowed",
	"began":             "started",
	"sign_in.failed":    "sign-in failed",
	"sign_in.succeeded": "signed in",
	"sign_out":          "signed out",
}

// whole are actions whose words do not follow from their parts.
var whole = map[string]string{
	"sign_in.succeeded":          "Signed in",
	"sign_out":                   "Signed out",
	"sign_in.failed":             "Sign-in failed",
	"platform.tenant_created":    "Tenant created",
	"totp.reset":                 "Second factor reset",
	"totp.enabled":               "Second factor turned on",
	"totp.disabled":              "Second factor turned off",
	"operator.totp.enabled":      "Operator second factor turned on",
	"member.role_changed":        "Member's role changed",
	"notice_preferences.changed": "Notification settings changed",
}

// Label is an action as people read it, the object first and then what happened to it: "Endpoint paused" for
// endpoint.pause.
func Label(action string) string {
	if text := whole[action]; text != "" {
		return text
	}
	object, verb, ok := strings.Cut(action, ".")
	if !ok {
		return action
	}
	if text := past[verb]; text != "" {
		verb = text
	}
	text := strings.NewReplacer("_", " ", ".", " ").Replace(object + " " + verb)
	if rest, ok := strings.CutPrefix(text, "view as"); ok {
		text = "view as tenant" + rest
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
