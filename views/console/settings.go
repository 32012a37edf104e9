package console

import (
	"time"

	"posthorn/views/components"
	"posthorn/views/layout"
)

// SettingsView is what operators have set for everybody.
type SettingsView struct {
	Shell  layout.Shell
	Groups []SettingGroup
	Seen   string // which version of the settings the form shows
	Wrong  string
}

// SettingGroup is a few settings that belong together.
type SettingGroup struct {
	Title  string
	Fields []SettingField
}

// SettingField is one setting: a choice where it has options.
type SettingField struct {
	components.FieldProps
	Options []components.Option
}

// LimitsForm is what one tenant may use and how long it keeps things.
type LimitsForm struct {
	Groups    []SettingGroup
	Retention components.FieldProps
	Seen      string
	Wrong     string
	Beyond    int    // asked before a shorter retention: of so many days; 0: nothing is asked
	Lost      string // what it deletes
}

// KeysView is the platform's keys, and the form of a new one.
type KeysView struct {
	Shell         layout.Shell
	Keys          []KeyLine
	Name, Expires components.FieldProps
	Scopes        []components.Option
	Wrong         string // about the scopes
	New, NewName  string // the text of the key that was just made, shown once
}

// KeyLine is one platform key.
type KeyLine struct {
	ID, Name, Prefix, Scopes string
	State                    string
	Tone                     components.Tone
	Created, Used, Ends      time.Time
}

// wrongSettings is what is wrong in the fields of some groups.
func wrongSettings(groups []SettingGroup) (out []components.Wrong) {
	for _, g := range groups {
		for _, f := range g.Fields {
			out = append(out, wrongIn(f.FieldProps)...)
		}
	}
	return out
}
