package console

import (
	"slices"
	"strings"
	"time"

	"posthorn/domain/show"
	"posthorn/views/components"
	"posthorn/views/layout"
	"posthorn/views/pages"
)

// SettingsView is the page of the platform's settings.
type SettingsView struct {
	Shell  layout.Shell
	Groups []SettingGroup
	Seen   string // the version of the settings that the form shows
	Wrong  string
}

// SettingGroup is a few settings that belong together.
type SettingGroup struct {
	Title  string
	Fields []SettingField
}

// line is what differs from the defaults, on one line.
func (g SettingGroup) line() string {
	var parts []string
	for _, f := range g.Fields {
		if f.Value == "" {
			continue
		}
		value := f.Value
		for _, o := range f.Options {
			if o.Value == f.Value {
				value = o.Label
			}
		}
		if f.Unit != "" {
			value += " " + f.Unit
		}
		parts = append(parts, f.Label+": "+value)
	}
	if len(parts) == 0 {
		return "Defaults"
	}
	return strings.Join(parts, " · ")
}

func (g SettingGroup) faulty() bool {
	return slices.ContainsFunc(g.Fields, func(f SettingField) bool { return f.Error != "" })
}

// SettingField is one setting: a choice if it has options.
type SettingField struct {
	components.FieldProps
	Options []components.Option
}

// LimitsForm is the form of a tenant's limits and retention.
type LimitsForm struct {
	Groups    []SettingGroup
	Retention components.FieldProps
	Seen      string
	Wrong     string
	Beyond    int    // a shorter retention of this many days needs a confirmation; 0: none is asked for
	Lost      string // what the shorter retention deletes
}

// KeysView lists the platform's keys, with the form of a new one.
type KeysView struct {
	Shell layout.Shell
	Keys  []show.Key
	Now   time.Time
	pages.KeyFields
	New, NewName string // the text of a new key, shown once
}

// wrongSettings are the errors in the fields of some groups.
func wrongSettings(groups []SettingGroup) (out []components.Wrong) {
	for _, g := range groups {
		for _, f := range g.Fields {
			out = append(out, wrongIn(f.FieldProps)...)
		}
	}
	return out
}
