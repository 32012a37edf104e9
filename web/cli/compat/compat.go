// Package compat compares two catalogues of event types as a receiver meets them.
package compat

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"

	"posthorn/domain/catalogue"
)

// Finding is one difference between two catalogues, as a receiver meets it.
type Finding struct {
	Type     string `json:"type"`
	Version  string `json:"version,omitempty"` // payload version, where the difference is in one
	Path     string `json:"path,omitempty"`    // in the data, such as data.items[].sku
	Detail   string `json:"detail"`
	Breaking bool   `json:"breaking"` // a receiver that was written for the old catalogue can fail
}

// Compare lists the differences between two catalogues: incompatible ones first, then by type. A receiver was written
// for the old one, so a change is compatible where all data that fits the new schema fits what the old one promised.
// What can't be compared, such as two patterns, counts as incompatible.
func Compare(old, current []catalogue.Entry) []Finding {
	before, after := map[string]catalogue.Entry{}, map[string]catalogue.Entry{}
	for _, e := range old {
		before[e.Name] = e
	}
	for _, e := range current {
		after[e.Name] = e
	}
	var found []Finding
	for _, name := range slices.Sorted(maps.Keys(before)) {
		a, b := before[name], after[name]
		if b.Name == "" {
			found = append(found, Finding{Type: name, Detail: "The event type was removed.", Breaking: true})
			continue
		}
		if b.Deprecated && !a.Deprecated {
			found = append(found, Finding{Type: name, Detail: "The event type is deprecated now."})
		}
		found = append(found, compareSchemas(name, "", a.Schema, b.Schema)...)
		for _, version := range catalogue.VersionNames(a.Versions) {
			v, there := b.Versions[version]
			if !there {
				found = append(found, Finding{Type: name, Version: version, Detail: "The version was removed.", Breaking: true})
				continue
			}
			found = append(found, compareSchemas(name, version, a.Versions[version].Schema, v.Schema)...)
		}
		for _, version := range catalogue.VersionNames(b.Versions) {
			if _, there := a.Versions[version]; !there {
				found = append(found, Finding{Type: name, Version: version, Detail: "The version is new."})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if before[name].Name == "" {
			found = append(found, Finding{Type: name, Detail: "The event type is new."})
		}
	}
	slices.SortStableFunc(found, func(a, b Finding) int { return cmp.Compare(weight(a), weight(b)) })
	return found
}

func weight(f Finding) int {
	if f.Breaking {
		return 0
	}
	return 1
}

// Incompatible reports whether any of the differences is.
func Incompatible(found []Finding) bool {
	return slices.ContainsFunc(found, func(f Finding) bool { return f.Breaking })
}

func compareSchemas(name, version string, old, current json.RawMessage) []Finding {
	a, errA := schemaOf(old)
	b, errB := schemaOf(current)
	c := &comparison{name: name, version: version, old: a, current: b, seen: map[[2]string]bool{}}
	switch {
	case errA != nil || errB != nil:
		c.breaks("data", "A schema is not JSON.")
	default:
		c.compare("data", a, b)
	}
	return c.found
}

// schemaOf is a type's schema as JSON, or true without one.
func schemaOf(text json.RawMessage) (any, error) {
	if len(text) == 0 || string(text) == "null" {
		return true, nil
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber() // numbers stay as they are written
	var v any
	err := dec.Decode(&v)
	return v, err
}

// comparison compares two schemas from the top down.
type comparison struct {
	name, version string
	old, current  any                // the roots, for references
	seen          map[[2]string]bool // pairs of references
	found         []Finding
}

func (c *comparison) breaks(path, format string, args ...any) {
	c.found = append(c.found, Finding{
		Type:     c.name,
		Version:  c.version,
		Path:     path,
		Detail:   fmt.Sprintf(format, args...),
		Breaking: true,
	})
}

func (c *comparison) note(path, detail string) {
	c.found = append(c.found, Finding{Type: c.name, Version: c.version, Path: path, Detail: detail})
}

// follow resolves references of a schema to itself.
func follow(v, root any) (target any, refs string) {
	for range 50 {
		m, ok := v.(map[string]any)
		ref, isRef := m["$ref"].(string)
		if !ok || !isRef {
			return v, refs
		}
		refs += ref + " "
		v = root
		for step := range strings.SplitSeq(strings.TrimPrefix(strings.TrimPrefix(ref, "#"), "/"), "/") {
			if step == "" {
				continue
			}
			step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
			at, _ := v.(map[string]any)
			v = at[step]
		}
	}
	return v, refs
}

// compare finds what the current schema allows and the old one did not.
func (c *comparison) compare(path string, old, current any) {
	old, refA := follow(old, c.old)
	current, refB := follow(current, c.current)
	if refA != "" || refB != "" {
		pair := [2]string{refA + path, refB}
		if c.seen[pair] || strings.Count(path, ".") > 40 { // schemas of other tools can be recursive
			return
		}
		c.seen[pair] = true
	}
	a, plainA := old.(map[string]any)
	b, plainB := current.(map[string]any)
	switch {
	case old == true || old == nil || plainA && len(a) == 0, current == false:
		return // nothing was promised, or nothing is sent
	case old == false:
		c.breaks(path, "Nothing was allowed here, and now something is.")
		return
	case !plainA || !plainB || len(b) == 0:
		c.breaks(path, "The schema was removed: any value is possible now.")
		return
	case reflect.DeepEqual(a, b) && !strings.Contains(fmt.Sprint(a), "$ref"):
		return
	}
	c.types(path, a, b)
	c.values(path, a, b)
	c.bounds(path, a, b)
	c.objects(path, a, b)
	c.arrays(path, a, b)
	c.combinations(path, a, b)
}

// typesOf are the types that a schema allows; nil is any.
func typesOf(m map[string]any) []string {
	switch t := m["type"].(type) {
	case string:
		return []string{t}
	case []any:
		out := make([]string, 0, len(t))
		for _, one := range t {
			text, _ := one.(string)
			out = append(out, text)
		}
		return out
	}
	return nil
}

// effective are the types that data of a schema can have, whichever keyword says so; nil is any.
func effective(v, root any, depth int) []string {
	v, _ = follow(v, root)
	m, ok := v.(map[string]any)
	if !ok || depth > 20 {
		return nil
	}
	if types := typesOf(m); types != nil {
		return types
	}
	if values, ok := allowed(m); ok {
		types := []string{}
		for _, value := range values {
			types = append(types, typeOf(value))
		}
		return types
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		choices, ok := m[word].([]any)
		if !ok {
			continue
		}
		types := []string{}
		for _, choice := range choices {
			some := effective(choice, root, depth+1)
			if some == nil {
				return nil
			}
			types = append(types, some...)
		}
		return types
	}
	parts, _ := m["allOf"].([]any)
	for _, part := range parts {
		if types := effective(part, root, depth+1); types != nil {
			return types
		}
	}
	return nil
}

func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case json.Number:
		if n, ok := number(v); ok && n.IsInt() {
			return "integer"
		}
		return "number"
	}
	return "object"
}

func (c *comparison) types(path string, a, b map[string]any) {
	before, after := typesOf(a), effective(b, c.current, 0)
	if before == nil {
		return
	}
	if after == nil {
		c.breaks(path, "The type was %s and can be any now.", strings.Join(before, " or "))
		return
	}
	for _, t := range after {
		if !slices.Contains(before, t) && (t != "integer" || !slices.Contains(before, "number")) {
			c.breaks(path, "The type was %s and can be %s now.", strings.Join(before, " or "), t)
		}
	}
}

// allowed are the values that a schema lists; ok is false where it lists none.
func allowed(m map[string]any) (values []any, ok bool) {
	if v, is := m["const"]; is {
		return []any{v}, true
	}
	values, ok = m["enum"].([]any)
	return values, ok
}

func (c *comparison) values(path string, a, b map[string]any) {
	before, listed := allowed(a)
	if !listed {
		return
	}
	after, still := allowed(b)
	if !still {
		c.breaks(path, "The values were listed, and can be others now.")
		return
	}
	for _, v := range after {
		if !slices.ContainsFunc(before, func(old any) bool { return reflect.DeepEqual(old, v) }) {
			text, _ := json.Marshal(v)
			c.breaks(path, "The value %s is new. Receivers might not know it.", text)
		}
	}
}

// lower are bounds that must not fall, upper those that must not rise.
var (
	lower = []string{"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains"}
	upper = []string{"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains"}
	fixed = []string{"pattern", "format", "multipleOf", "contentEncoding", "contentMediaType"}
)

func (c *comparison) bounds(path string, a, b map[string]any) {
	for _, list := range []struct {
		words []string
		sign  int
	}{{lower, -1}, {upper, 1}} {
		for _, word := range list.words {
			before, had := number(a[word])
			after, has := number(b[word])
			switch {
			case !had:
			case !has:
				c.breaks(path, "%s was %s and is not limited now.", word, a[word])
			case after.Cmp(before) == list.sign:
				c.breaks(path, "%s was %s and is %s now.", word, a[word], b[word])
			}
		}
	}
	for _, word := range fixed {
		if v, had := a[word]; had && !reflect.DeepEqual(v, b[word]) {
			c.breaks(path, "%s was %v and is %v now.", word, v, orNone(b[word]))
		}
	}
	if a["uniqueItems"] == true && b["uniqueItems"] != true {
		c.breaks(path, "Items were unique, and need not be now.")
	}
}

func orNone(v any) any {
	if v == nil {
		return "none"
	}
	return v
}

func number(v any) (*big.Rat, bool) {
	n, ok := v.(json.Number)
	if !ok || strings.ContainsAny(string(n), "eE") && len(n) > 8 {
		return nil, false
	}
	return new(big.Rat).SetString(string(n))
}

func (c *comparison) objects(path string, a, b map[string]any) {
	before, _ := a["properties"].(map[string]any)
	after, _ := b["properties"].(map[string]any)
	needed, always := names(a["required"]), names(b["required"])
	for _, name := range slices.Sorted(maps.Keys(before)) {
		at := path + "." + name
		now, still := after[name]
		switch {
		case !still:
			c.breaks(at, "The field was removed.")
			continue
		case slices.Contains(needed, name) && !slices.Contains(always, name):
			c.breaks(at, "The field was always there, and can be missing now.")
		}
		c.compare(at, before[name], now)
	}
	for _, name := range needed {
		if _, described := before[name]; !described && !slices.Contains(always, name) {
			c.breaks(path+"."+name, "The field was always there, and can be missing now.")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, had := before[name]; had {
			continue
		}
		if a["additionalProperties"] == false {
			c.breaks(path+"."+name, "The field is new, and the old schema rejects fields that it does not name.")
			continue
		}
		c.note(path+"."+name, "The field is new.")
	}
	if rest, had := a["additionalProperties"]; had && (rest != false || b["additionalProperties"] != false) {
		if open := b["additionalProperties"]; rest == false {
			c.breaks(path, "Other fields were rejected, and are allowed now.")
		} else {
			c.compare(path+".*", rest, orTrue(open))
		}
	}
}

func orTrue(v any) any {
	if v == nil {
		return true
	}
	return v
}

func names(v any) (out []string) {
	list, _ := v.([]any)
	for _, one := range list {
		if text, ok := one.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

func (c *comparison) arrays(path string, a, b map[string]any) {
	before, _ := a["prefixItems"].([]any)
	after, _ := b["prefixItems"].([]any)
	if items, had := a["items"]; had {
		c.compare(path+"[]", items, orTrue(b["items"]))
		for i := len(before); i < len(after); i++ { // positions that items described, and have a schema of their own now
			c.compare(fmt.Sprintf("%s[%d]", path, i), items, after[i])
		}
	}
	for i := range before {
		var now any = true
		if i < len(after) {
			now = after[i]
		} else if items, has := b["items"]; has {
			now = items
		}
		c.compare(fmt.Sprintf("%s[%d]", path, i), before[i], now)
	}
}

// opaque lists keywords that can't be compared. A change of one counts as incompatible.
var opaque = []string{"not", "if", "then", "else", "dependentRequired", "dependentSchemas", "patternProperties", "propertyNames", "contains", "unevaluatedProperties", "unevaluatedItems"}

func (c *comparison) combinations(path string, a, b map[string]any) {
	for _, word := range opaque {
		if v, had := a[word]; had && !reflect.DeepEqual(v, b[word]) {
			c.breaks(path, "%s was changed, which can't be compared.", word)
		}
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		before, had := a[word].([]any)
		if !had {
			continue
		}
		after, _ := b[word].([]any)
		if after == nil {
			after = []any{b}
		}
		for i, choice := range after {
			if !slices.ContainsFunc(before, func(old any) bool { return c.fits(old, choice) }) {
				c.breaks(path, "Choice %d of %s fits none of the choices that there were.", i+1, word)
			}
		}
	}
	before, _ := a["allOf"].([]any)
	after, _ := b["allOf"].([]any)
	for i, part := range before {
		now := any(b)
		if i < len(after) {
			now = after[i]
		}
		if m, ok := now.(map[string]any); ok && i >= len(after) {
			m = maps.Clone(m)
			delete(m, "allOf")
			now = m
		}
		c.compare(path, part, now)
	}
}

// fits reports whether one schema allows nothing that another did not.
func (c *comparison) fits(old, current any) bool {
	try := &comparison{old: c.old, current: c.current, seen: map[[2]string]bool{}}
	try.compare("", old, current)
	return !Incompatible(try.found)
}
