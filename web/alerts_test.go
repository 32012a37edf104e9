package main

import (
	"slices"
	"strings"
	"testing"
)

func TestTheCommandLineListsAndMutesKindsOfNotices(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	var endpoint thing
	d.ok(&endpoint, "endpoints create --json --verify-later --event-types posthorn.secret.* https://hooks.example.com/in")
	type row struct {
		Kind     string   `json:"kind"`
		Muted    bool     `json:"muted"`
		Channels []string `json:"channels"`
	}
	muted := func() (kinds []string) {
		t.Helper()
		var rows []row
		d.ok(&rows, "alerts list --json")
		for _, r := range rows {
			if r.Muted {
				kinds = append(kinds, r.Kind)
			}
			if toIt := slices.Equal(r.Channels, []string{endpoint.ID}); toIt != (r.Kind == "secret.rotated") {
				t.Errorf("%s has the channels %q", r.Kind, r.Channels)
			}
		}
		return kinds
	}
	if got := muted(); len(got) != 0 {
		t.Errorf("at first muted: %q", got)
	}
	if out := d.ok(nil, "alerts mute digest posthorn.key.created secret.rotated"); !strings.Contains(out, "Muted: secret.rotated, key.created, digest.") {
		t.Errorf("muted: %s", out)
	}
	if out := d.ok(nil, "alerts unmute secret.rotated"); !strings.Contains(out, "Muted: key.created, digest.") {
		t.Errorf("unmuted one: %s", out)
	}
	if got, want := muted(), []string{"key.created", "digest"}; !slices.Equal(got, want) {
		t.Errorf("muted %q, want %q", got, want)
	}
	if out := d.ok(nil, "alerts list"); !strings.Contains(out, endpoint.ID) || strings.Count(out, " muted ") != 2 {
		t.Errorf("listed: %s", out)
	}
	if out := d.ok(nil, "alerts unmute key.created digest"); !strings.Contains(out, "No kind of notice is muted.") {
		t.Errorf("unmuted: %s", out)
	}
}
