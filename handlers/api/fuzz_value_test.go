package api_test

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
)

// fuzzer makes requests from the contract, most of them wrong in one place.
type fuzzer struct {
	*rand.Rand
	w       *world
	ids     map[string][]string // by prefix, or by the name of a path parameter with a kind of its own; the newest last
	kept    map[string]bool     // ids that no request names: the caller's own key and tenant
	cursors []string
	last    *answer // to the latest request
}

// chance is true once in n times, on average.
func (f *fuzzer) chance(n int) bool { return f.IntN(n) == 0 }

func pick[T any](f *fuzzer, from ...T) T { return from[f.IntN(len(from))] }

// nasty are texts that break programs.
var nasty = []string{
	"", " ", "null", "0", "-1", "true", "'", `"`, "\\", "%", "%00", "%s%n", "\x00", "\xff\xfe", "\ud7ff\uffff", "..", "../..", "/", "//", "\r\nX: y", "\u202e",
	"9223372036854775808", "-9223372036854775809", "1e400", "NaN", "2026-02-30T25:61:61Z", "0000-00-00T00:00:00Z", "9999-12-31T23:59:59.999999999+23:59",
	"ep_", "ep_00000000000000000000000000", "evt_7zzzzzzzzzzzzzzzzzzzzzzzzz", "evt_zzzzzzzzzzzzzzzzzzzzzzzzzz", strings.Repeat("a", 300), strings.Repeat("ä", 5000), "$(id)", "'; DROP TABLE posthorn.events; --", "{{7*7}}", "*", "*.*", "a..b", "🪤",
	"order.completed", "data.a > 1", "data.map(x, data.map(y, y))", "((((((((((", "https://example.com", "https://127.0.0.1/", "whsec_", "whsec_AAAA", "standard", "key",
}

// idsNamed maps the names of fields to the kind of ids in them.
var idsNamed = map[string]string{
	"endpoint":         "ep",
	"endpoint_id":      "ep",
	"event_id":         "evt",
	"delivery_id":      "dlv",
	"attempt_id":       "att",
	"ids":              "dlv",
	"tenant_id":        "ten",
	"key_id":           "key",
	"job_id":           "job",
	"batch":            "bat",
	"member_id":        "mem",
	"invitation_id":    "inv",
	"portal_link_id":   "plk",
	"pause_id":         "pse",
	"inbox_request_id": "rcv",
	"consumer":         "consumer",
	"subscription_id":  "subscription",
	"source_id":        "source",
	"lastEventId":      "place",
	"offset":           "place",
}

// mostIDs is how many of a kind are remembered.
const mostIDs = 40

var anID = regexp.MustCompile(`\b([a-z]{2,3})_[0-9a-hjkmnp-tv-z]{26}\b`)

// learn remembers the ids and cursors in a response.
func (f *fuzzer) learn(op *openapi3.Operation, body []byte) {
	for _, found := range anID.FindAllStringSubmatch(string(body), 20) {
		f.remember(found[1], found[0])
	}
	var said struct {
		ID, Name   string
		Kind       string
		NextCursor string `json:"next_cursor"`
	}
	if json.Unmarshal(body, &said) != nil {
		return
	}
	if said.NextCursor != "" {
		f.cursors = append(f.cursors[max(0, len(f.cursors)-mostIDs):], said.NextCursor)
	}
	switch op.OperationID {
	case "createEventType":
		f.remember("name", said.Name)
	case "createEndpoint":
		if said.Kind == "feed" {
			f.remember("feed", said.ID)
		}
	case "createFeedConsumer":
		f.remember("consumer", said.Name)
	case "createListener":
		f.remember("listener", said.ID)
	case "createInbox":
		f.remember("inbox", said.ID)
	}
}

func (f *fuzzer) remember(kind, id string) {
	if known := f.ids[kind]; id != "" && !f.kept[id] && !slices.Contains(known, id) {
		f.ids[kind] = append(known[max(0, len(known)-mostIDs):], id)
	}
}

// id is an existing id of the kind that a field or a path parameter expects, or empty.
func (f *fuzzer) id(name, path string) string {
	kind := idsNamed[name]
	switch {
	case name == "endpoint_id" && strings.HasPrefix(path, "/listeners/"):
		kind = "listener"
	case name == "endpoint_id" && strings.HasPrefix(path, "/feeds/"):
		kind = "feed"
	case name == "endpoint_id" && strings.HasSuffix(path, "/test-connection"):
		kind = "hook"
	case name == "cursor" && (path == "" || strings.HasPrefix(path, "/feeds/")):
		kind = "place"
	case name == "endpoint_id" && strings.Contains(path, "/inbox"):
		kind = "inbox"
	case name == "rejected_id", name == "day" && path != "", name == "name" && path != "":
		kind = name
	}
	if len(f.ids[kind]) == 0 {
		return ""
	}
	return pick(f, f.ids[kind]...)
}

// value makes a value of a schema for a named field, or a wrong one where wrong says so.
func (f *fuzzer) value(name string, s *openapi3.SchemaRef, wrong, depth int) any {
	if s == nil || s.Value == nil || depth > 8 {
		return f.anything(2)
	}
	if wrong > 0 && f.chance(wrong) {
		return f.anything(3)
	}
	v := s.Value
	switch {
	case wrong == 0 && name == "format" && slices.Contains(v.Enum, any("template")):
		return "standard" // template needs wire
	case len(v.OneOf) > 0:
		return f.value(name, pick(f, v.OneOf...), wrong, depth+1)
	case len(v.AllOf) > 0:
		whole := map[string]any{}
		for _, part := range v.AllOf {
			one := f.value(name, part, wrong, depth+1)
			object, ok := one.(map[string]any)
			if !ok {
				return one
			}
			for name, value := range object {
				whole[name] = value
			}
		}
		return whole
	case len(v.Enum) > 0:
		if v.Example != nil && !f.chance(3) {
			return v.Example
		}
		return pick(f, v.Enum...)
	}
	if v.Type.Permits("string") && !f.chance(8) {
		if id := f.id(name, ""); id != "" {
			return id
		}
	}
	switch {
	case v.Example != nil && !f.chance(3):
		return v.Example
	case v.Type == nil || len(*v.Type) == 0:
		return f.anything(3)
	}
	switch pick(f, *v.Type...) {
	case "object":
		return f.object(v, wrong, depth)
	case "array":
		return f.array(name, v, wrong, depth)
	case "integer", "number":
		low, high := 0.0, 1000.0
		if v.Min != nil {
			low = *v.Min
		}
		if v.Max != nil {
			high = *v.Max
		}
		return int64(low + f.Float64()*(high-low))
	case "boolean":
		return f.chance(2)
	case "null":
		return nil
	}
	return f.text(v)
}

func (f *fuzzer) object(v *openapi3.Schema, wrong, depth int) any {
	names := make([]string, 0, len(v.Properties))
	for name := range v.Properties {
		names = append(names, name)
	}
	slices.Sort(names) // so that a seed repeats the same requests
	object := map[string]any{}
	for _, name := range names {
		if wrong == 0 && (name == "wire" || name == "assume_verified" || name == "paused") {
			continue // fit some formats and some keys alone
		}
		// The more fields an object has, the rarer each is: many exclude each other.
		if slices.Contains(v.Required, name) || f.chance(2+len(v.Properties)/8) {
			object[name] = f.value(name, v.Properties[name], wrong, depth+1)
		}
	}
	if len(v.Required) > 0 && wrong > 0 && f.chance(wrong) {
		delete(object, pick(f, v.Required...))
	}
	if v.AdditionalProperties.Schema != nil {
		for range f.IntN(4) {
			object[pick(f, nasty...)] = f.value("", v.AdditionalProperties.Schema, wrong, depth+1)
		}
	} else if wrong > 0 && f.chance(wrong) {
		object[pick(f, nasty...)] = f.anything(2)
	}
	return object
}

func (f *fuzzer) array(name string, v *openapi3.Schema, wrong, depth int) any {
	list := []any{}
	for range int(v.MinItems) + f.IntN(3) {
		list = append(list, f.value(name, v.Items, wrong, depth+1))
	}
	if wrong > 0 && v.MaxItems != nil && *v.MaxItems < 200 && f.chance(wrong) {
		for uint64(len(list)) <= *v.MaxItems {
			list = append(list, f.value(name, v.Items, 0, depth+1))
		}
	}
	return list
}

func (f *fuzzer) text(v *openapi3.Schema) string {
	if v.Format == "date-time" {
		return time.Now().Add(time.Duration(f.Int64N(int64(90*24*time.Hour))) - 45*24*time.Hour).UTC().Format(
			time.RFC3339)
	}
	if f.chance(2) {
		return pick(f, "order.completed", "order.*", "shop", "Acme", "a", "x-1", "ada@example.com", "https://hooks.example.com/b")
	}
	length := int(v.MinLength) + f.IntN(20)
	if v.MaxLength != nil {
		length = min(length, int(*v.MaxLength))
	}
	return strings.Repeat("b", length)
}

// anything is some JSON.
func (f *fuzzer) anything(depth int) any {
	switch f.IntN(9) {
	case 0:
		return nil
	case 1:
		return f.chance(2)
	case 2:
		return pick[any](f, 0, -1, 1<<31, 1e18, -1e300, 0.1)
	case 3, 4, 5:
		return strings.ToValidUTF8(pick(f, nasty...), "?")
	case 6:
		deep := any("bottom")
		for range 100 {
			deep = []any{deep}
		}
		return pick(f, deep, any([]any{}))
	}
	if depth == 0 {
		return map[string]any{}
	}
	return map[string]any{
		strings.ToValidUTF8(pick(f, nasty...), "?"): f.anything(depth - 1),
		"a": []any{f.anything(depth - 1)},
	}
}
