// Package desired compares the objects that a file asks for with those that are present, and plans the changes between.
package desired

import (
	"cmp"
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strings"
)

// Kind is the kind of an object.
type Kind string

// The kinds, in the order in which they are changed.
const (
	Platform  Kind = "platform"
	Tenant    Kind = "tenant"
	EventType Kind = "event_type"
	Endpoint  Kind = "endpoint"
	Source    Kind = "source"
	Member    Kind = "member"
	Key       Kind = "key"
	SSO       Kind = "sso"
)

var kinds = []Kind{Platform, Tenant, EventType, Endpoint, Source, Member, Key, SSO}

// Object is a thing with the values of its fields as JSON: nil, bool, string, json.Number, []any, map[string]any.
type Object struct {
	Kind   Kind
	Tenant string // the tenant's name in the file; empty of the platform
	Name   string // unique within its kind and tenant
	ID     string // Posthorn's own id; empty where it has none yet
	Fields map[string]any
}

// key is what an object is known by.
type key struct {
	kind         Kind
	tenant, name string
}

func (o Object) key() key { return key{o.Kind, o.Tenant, o.Name} }

// Action is what becomes of an object.
type Action string

// The actions.
const (
	Create Action = "create"
	Update Action = "update"
	Delete Action = "delete"
)

// Difference is one field that changes. A secret value is in neither From nor To.
type Difference struct {
	Field  string `json:"field"`
	From   any    `json:"from,omitempty"`
	To     any    `json:"to,omitempty"`
	Secret bool   `json:"secret,omitempty"`
}

// Change is one step of a plan.
type Change struct {
	Action Action       `json:"action"`
	Kind   Kind         `json:"kind"`
	Tenant string       `json:"tenant,omitempty"`
	Name   string       `json:"name,omitempty"`
	Fields []Difference `json:"fields,omitempty"`
	Wanted Object       `json:"-"`
	ID     string       `json:"-"` // of the object that is present
}

// Rules configure a comparison.
type Rules struct {
	// Parts are the fields of a kind that are compared part by part: a part that the file leaves out is not managed.
	Parts map[Kind][]string
	// Unordered are the fields of a kind that are lists without an order.
	Unordered map[Kind][]string
	// Ignored are the fields of a kind that count when an object is created and never afterwards.
	Ignored map[Kind][]string
	// Same returns the server's comparison of a field, or of the whole object if field is empty. If known is false, the
	// server has none, and the values decide.
	Same func(o Object, field string) (same, known bool)
	// Secret reports whether a field's value is never shown.
	Secret func(o Object, field string) bool
	// Prune reports whether a present object that the file does not name is deleted.
	Prune func(Object) bool
}

// Plan lists the changes from what is present to what is wanted: creations and updates in the order of the kinds and of
// the file, then deletions in the opposite order. A field that the file leaves out is not managed.
func Plan(wanted, present []Object, rules Rules) []Change {
	there := make(map[key]Object, len(present))
	for _, o := range present {
		there[o.key()] = o
	}
	named := make(map[key]bool, len(wanted))
	var plan []Change
	for _, w := range wanted {
		named[w.key()] = true
		p, found := there[w.key()]
		change := Change{Action: Update, Kind: w.Kind, Tenant: w.Tenant, Name: w.Name, Wanted: w, ID: p.ID}
		if !found {
			change.Action = Create
			plan = append(plan, change)
			continue
		}
		if change.Fields = rules.differences(w, p); len(change.Fields) > 0 {
			plan = append(plan, change)
		}
	}
	var gone []Change
	for _, p := range present {
		if !named[p.key()] && rules.Prune != nil && rules.Prune(p) {
			gone = append(gone, Change{Action: Delete, Kind: p.Kind, Tenant: p.Tenant, Name: p.Name, ID: p.ID})
		}
	}
	slices.SortStableFunc(gone, func(a, b Change) int {
		return cmp.Compare(slices.Index(kinds, b.Kind), slices.Index(kinds, a.Kind))
	})
	return append(plan, gone...)
}

// hidden is the field of a difference that only the server sees.
const hidden = "write-only values"

// differences are the fields of a present object that the file wants otherwise.
func (r Rules) differences(w, p Object) (out []Difference) {
	for _, field := range slices.Sorted(maps.Keys(w.Fields)) {
		if slices.Contains(r.Ignored[w.Kind], field) {
			continue
		}
		if same, known := r.same(w, field); known {
			if !same {
				out = append(out, Difference{Field: field, Secret: true})
			}
			continue
		}
		from, to := p.Fields[field], w.Fields[field]
		parts, isParts := to.(map[string]any)
		if !isParts || !slices.Contains(r.Parts[w.Kind], field) {
			out = r.differ(out, w, field, from, to)
			continue
		}
		whole, _ := from.(map[string]any)
		for _, part := range slices.Sorted(maps.Keys(parts)) {
			out = r.differ(out, w, field+"."+part, whole[part], parts[part])
		}
	}
	if same, known := r.same(w, ""); known && !same && len(out) == 0 {
		out = append(out, Difference{Field: hidden, Secret: true})
	}
	return out
}

func (r Rules) same(o Object, field string) (same, known bool) {
	if r.Same == nil {
		return false, false
	}
	return r.Same(o, field)
}

func (r Rules) differ(out []Difference, w Object, field string, from, to any) []Difference {
	top, _, _ := strings.Cut(field, ".")
	if slices.Contains(r.Unordered[w.Kind], top) {
		from, to = sorted(from), sorted(to)
	}
	if Equal(from, to) {
		return out
	}
	if r.Secret != nil && r.Secret(w, field) {
		return append(out, Difference{Field: field, Secret: true})
	}
	return append(out, Difference{Field: field, From: from, To: to})
}

// sorted is a list of texts in order; any other value stays.
func sorted(v any) any {
	list, ok := v.([]any)
	if !ok {
		return v
	}
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b any) int {
		x, _ := a.(string)
		y, _ := b.(string)
		return strings.Compare(x, y)
	})
	return list
}

// Equal reports whether two JSON values mean the same: 1, 1.0 and 1e0 are one number, members have no order.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, Equal)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, Equal)
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(a, b)
	default:
		return a == b
	}
}

// sameNumber compares exactly, and as texts where an exponent would make a number too long to write out.
func sameNumber(a, b json.Number) bool {
	if a == b || len(a) > 40 || len(b) > 40 || strings.ContainsAny(string(a)+string(b), "eE") {
		x, errX := a.Float64()
		y, errY := b.Float64()
		return a == b || errX == nil && errY == nil && x == y
	}
	x, okX := new(big.Rat).SetString(string(a))
	y, okY := new(big.Rat).SetString(string(b))
	return okX && okY && x.Cmp(y) == 0
}
