package health

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"posthorn/domain/fault"
)

// Amend changes the policy within the settings of a tenant or of the platform: parts by name, each a bool or an int, or
// nil to inherit again. Other settings stay. Unknown parts, values of a wrong type and values out of range are refused
// with a *fault.Error that names them below field, with their valid values.
func Amend(settings []byte, field string, parts map[string]any) ([]byte, error) {
	var wrong []fault.Field
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		if code, detail := checkPart(field, name, parts[name]); code != "" {
			wrong = append(wrong, fault.Field{Name: field + "." + name, Code: code, Detail: detail})
		}
	}
	if len(wrong) > 0 {
		return nil, fault.InvalidFields(wrong)
	}
	all, own := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if len(settings) > 0 {
		if err := json.Unmarshal(settings, &all); err != nil {
			return nil, fmt.Errorf("settings: %w", err)
		}
	}
	if json.Unmarshal(all["health"], &own) != nil || own == nil {
		own = map[string]json.RawMessage{}
	}
	for name, value := range parts {
		if value == nil {
			delete(own, name)
			continue
		}
		own[name], _ = json.Marshal(value) // a bool or an int
	}
	delete(all, "health")
	if len(own) > 0 {
		all["health"], _ = json.Marshal(own)
	}
	return json.Marshal(all)
}

func checkPart(field, name string, value any) (code, detail string) {
	if name == "gone" {
		if _, is := value.(bool); value != nil && !is {
			return "wrong_type", field + ".gone must be true or false."
		}
		return "", ""
	}
	for _, r := range ranges {
		if r.Name != name {
			continue
		}
		if n, is := value.(int); value != nil && (!is || !r.Allows(n)) {
			return "out_of_range", field + strings.TrimPrefix(r.Sentence(), "health")
		}
		return "", ""
	}
	return "unknown_field", "There is no such part of the policy."
}
