package catalogue

import (
	"posthorn/domain/schema"
)

// Checks are a type's schemas made ready. They are read-only and safe for concurrent use.
type Checks struct {
	mode     Mode
	schema   *schema.Schema
	versions map[string]*schema.Schema
}

// Compiled remembers schemas by their text, so that those that stay are not compiled again.
type Compiled map[string]*schema.Schema

// Checks makes an entry's checks, taking schemas from those that were compiled before and adding to now. A schema was
// compiled when it was saved; one that can't be compiled any more checks nothing, and must not stop emissions.
func (e Entry) Checks(before, now Compiled) *Checks {
	if e.Check == Off {
		return &Checks{mode: Off}
	}
	ready := func(text []byte) *schema.Schema {
		if text == nil {
			return nil
		}
		key := string(text)
		if s, known := now[key]; known {
			return s
		}
		s, known := before[key]
		if !known {
			s, _ = schema.Compile(text)
		}
		now[key] = s
		return s
	}
	c := &Checks{mode: e.Check, schema: ready(e.Schema), versions: make(map[string]*schema.Schema, len(e.Versions))}
	for name, v := range e.Versions {
		c.versions[name] = ready(v.Schema)
	}
	return c
}

// Unknown reports whether a type declares versions and the given one, which is not empty, is not among them. Usually it
// is mistyped, and no endpoint pinned to a version would get the event. enforce says whether the event is rejected.
func (c *Checks) Unknown(version string) (unknown, enforce bool) {
	if c == nil || c.mode == Off || version == "" || len(c.versions) == 0 {
		return false, false
	}
	_, known := c.versions[version]
	return !known, c.mode == Enforce
}

// Of is the schema for a payload version, which can be empty, and whether data that does not match is rejected. Nil:
// nothing is checked. An undeclared version is checked by the type's own schema.
func (c *Checks) Of(version string) (s *schema.Schema, enforce bool) {
	if c == nil || c.mode == Off {
		return nil, false
	}
	s = c.schema
	if own, known := c.versions[version]; known && own != nil {
		s = own
	}
	return s, c.mode == Enforce
}
