package transform

import (
	"strings"

	"posthorn/domain/expression"
	"posthorn/domain/signature"
)

// tree has paths by their first field; a leaf is the end of a path.
type tree map[string]tree

func treeOf(paths []string) tree {
	if len(paths) == 0 {
		return nil
	}
	root := tree{}
	for _, path := range paths {
		at := root
		for _, name := range strings.Split(path, ".") {
			if at[name] == nil {
				at[name] = tree{}
			}
			at = at[name]
		}
		at[end] = tree{}
	}
	return root
}

// end is no name of a path, which has no empty field.
const end = ""

// under are the subtrees for a member of an object or an element of a list, which has no name.
func (t tree) under(name string) (found []tree) {
	for _, key := range []string{name, "*"} {
		if next, ok := t[key]; ok && key != end {
			found = append(found, next)
		}
	}
	return found
}

func ends(trees []tree) bool {
	for _, t := range trees {
		if _, ok := t[end]; ok {
			return true
		}
	}
	return false
}

// part is the data that Fields leaves. Data that is no object or list stays as it is.
func (c *Compiled) part(m signature.Message) ([]byte, error) {
	data, err := decode(m.Data)
	if err != nil {
		return nil, &Problem{Problem: expression.Problem{Text: "the event's data is not JSON"}}
	}
	if c.keep != nil {
		data, _ = keepOnly(data, []tree{c.keep})
	}
	if c.drop != nil {
		data = without(data, []tree{c.drop})
	}
	if c.redact != nil {
		data = masked(data, []tree{c.redact})
	}
	out, err := appendNative(nil, data, 0)
	if err != nil {
		return nil, &Problem{Problem: expression.Problem{Text: err.Error()}}
	}
	return out, nil
}

func below(trees []tree, name string) (found []tree) {
	for _, t := range trees {
		found = append(found, t.under(name)...)
	}
	return found
}

// keepOnly leaves what a path names and what is below it. Objects and lists on the way stay.
func keepOnly(v any, trees []tree) (any, bool) {
	if ends(trees) {
		return v, true
	}
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			next := below(trees, name)
			if kept, ok := keepOnly(member, next); ok && len(next) > 0 {
				v[name] = kept
			} else {
				delete(v, name)
			}
		}
		return v, true
	case []any:
		kept := v[:0]
		for _, item := range v {
			if k, ok := keepOnly(item, below(trees, "*")); ok && len(below(trees, "*")) > 0 {
				kept = append(kept, k)
			}
		}
		return kept, true
	}
	return v, false
}

func without(v any, trees []tree) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			switch next := below(trees, name); {
			case ends(next):
				delete(v, name)
			case len(next) > 0:
				v[name] = without(member, next)
			}
		}
	case []any:
		next := below(trees, "*")
		if ends(next) {
			return []any{}
		}
		for i, item := range v {
			v[i] = without(item, next)
		}
	}
	return v
}

func masked(v any, trees []tree) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			switch next := below(trees, name); {
			case ends(next):
				v[name] = redacted
			case len(next) > 0:
				v[name] = masked(member, next)
			}
		}
	case []any:
		next := below(trees, "*")
		for i, item := range v {
			if ends(next) {
				v[i] = redacted
			} else {
				v[i] = masked(item, next)
			}
		}
	}
	return v
}
