// Package catalogue holds the rules of a tenant's event types: what an entry can contain, and how data is checked.
package catalogue

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"posthorn/domain/characters"
	"posthorn/domain/event"
	"posthorn/domain/fault"
	"posthorn/domain/schema"
)

// Mode says what becomes of an emission whose data does not fit its type's schema.
type Mode string

// The modes.
const (
	Off     Mode = "off"     // nothing is checked
	Warn    Mode = "warn"    // the event is stored, and its producer told
	Enforce Mode = "enforce" // the event is refused
)

// The bounds of an entry.
const (
	maxDescription = 1000 // characters
	maxGroup       = 64   // characters
	maxVersions    = 20
	maxExample     = 64 << 10 // bytes
)

// Entry is one event type. JSON that is not given is nil, and the times of one that is not stored are zero.
type Entry struct {
	Name        string
	Description string
	Group       string
	Schema      json.RawMessage
	Example     json.RawMessage
	Check       Mode
	Deprecated  bool
	Versions    map[string]Version
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// Version is what one payload version of a type says instead of the type itself.
type Version struct {
	Schema  json.RawMessage `json:"schema,omitempty"`
	Example json.RawMessage `json:"example,omitempty"`
}

// DecodeVersions reads versions as they are stored: a JSON object, or nothing.
func DecodeVersions(stored *string) (map[string]Version, error) {
	if stored == nil {
		return nil, nil
	}
	var v map[string]Version
	err := json.Unmarshal([]byte(*stored), &v)
	return v, err
}

// EncodeVersions is the stored form; nil without versions.
func (e Entry) EncodeVersions() (*string, error) {
	if len(e.Versions) == 0 {
		return nil, nil
	}
	out, err := json.Marshal(e.Versions)
	text := string(out)
	return &text, err
}

// Validate says what is wrong with an entry, all of it, as a *fault.Error.
func (e Entry) Validate() error {
	var wrong []fault.Field
	refuse := func(field, code, detail string) {
		wrong = append(wrong, fault.Field{Name: field, Code: code, Detail: detail})
	}
	if !event.ValidType(e.Name) {
		refuse("name", event.CodeTypeMalformed, "An event type has 1 to 128 letters, digits, hyphens, and underscores, in segments joined by dots, such as order.completed.")
	}
	checkText(refuse, "description", e.Description, maxDescription)
	checkText(refuse, "group", e.Group, maxGroup)
	switch e.Check {
	case Off, Warn, Enforce:
	default:
		refuse("schema_check", "schema_check_unknown", "schema_check must be off, warn, or enforce.")
	}
	checkPair(refuse, "", e.Schema, e.Example)
	if len(e.Versions) > maxVersions {
		refuse("versions", "versions_count", fmt.Sprintf("An event type can have at most %d versions; this one has %d.", maxVersions, len(e.Versions)))
	} else {
		for _, name := range slices.Sorted(maps.Keys(e.Versions)) {
			if !validVersion(name) {
				refuse("versions", "version_malformed", fmt.Sprintf("A version can have 1 to %d letters, digits, and the characters . _ -, such as 2026-01-31.", event.MaxVersion))
				continue
			}
			checkPair(refuse, "versions."+name+".", e.Versions[name].Schema, e.Versions[name].Example)
		}
	}
	if len(wrong) > 0 {
		return fault.InvalidFields(wrong)
	}
	return nil
}

func checkText(refuse func(field, code, detail string), field, text string, most int) {
	if n := utf8.RuneCountInString(text); n > most {
		refuse(field, "text_length", fmt.Sprintf("The field %s can have at most %d characters; this one has %d.", field, most, n))
	}
	if !characters.Lines(text) {
		refuse(field, "text_characters", "The field "+field+" must not contain control characters or invisible characters.")
	}
}

// checkPair checks a schema, and an example against it.
func checkPair(refuse func(field, code, detail string), at string, text, example json.RawMessage) {
	var compiled *schema.Schema
	if text != nil {
		var err error
		if compiled, err = schema.Compile(text); err != nil {
			refuse(at+"schema", "schema_invalid", fault.As(err).Detail)
			return
		}
	}
	if len(example) > maxExample {
		refuse(at+"example", "example_too_large", fmt.Sprintf("An example can have at most %d bytes.", maxExample))
		return
	}
	if compiled == nil || example == nil {
		return
	}
	if found, _ := compiled.Check(example, nil); len(found) > 0 { // nothing stops it
		field := at + "example" + strings.TrimPrefix(found[0].Field, "data")
		refuse(field, "example_mismatch", "The example doesn't match its schema. "+found[0].Detail)
	}
}

func validVersion(v string) bool {
	return v != "" && len(v) <= event.MaxVersion && !strings.ContainsFunc(v, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
	})
}
