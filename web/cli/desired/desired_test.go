package desired_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"posthorn/web/cli/desired"
)

func object(kind desired.Kind, name string, fields map[string]any) desired.Object {
	return desired.Object{Kind: kind, Tenant: "t", Name: name, ID: "id-" + name, Fields: fields}
}

func TestThePlanHasWhatDiffers(t *testing.T) {
	t.Parallel()
	wanted := []desired.Object{
		object(desired.Tenant, "same", map[string]any{"n": json.Number("1"), "policy": map[string]any{"a": true}, "contacts": []any{"b", "a"}, "once": "x"}),
		object(desired.Tenant, "other", map[string]any{"n": json.Number("2"), "policy": map[string]any{"a": false}, "token": "new"}),
		object(desired.Endpoint, "new", nil),
		object(desired.Endpoint, "asked", map[string]any{"n": json.Number("2")}),
		object(desired.Endpoint, "hidden", map[string]any{"n": json.Number("1")}),
	}
	present := []desired.Object{
		object(desired.Key, "kept", nil),
		object(desired.Tenant, "dropped", nil),
		object(desired.Endpoint, "dropped", nil),
		object(desired.Tenant, "same", map[string]any{
			"n":        json.Number("1.0"),
			"policy":   map[string]any{"a": true, "b": 7},
			"contacts": []any{"a", "b"},
			"once":     "y",
			"more":     true,
		}),
		object(desired.Tenant, "other", map[string]any{"n": json.Number("1"), "policy": map[string]any{"a": true}, "token": "old"}),
		object(desired.Endpoint, "asked", map[string]any{"n": json.Number("1")}),
		object(desired.Endpoint, "hidden", map[string]any{"n": json.Number("1")}),
	}
	plan := desired.Plan(wanted, present, desired.Rules{
		Parts:     map[desired.Kind][]string{desired.Tenant: {"policy"}},
		Unordered: map[desired.Kind][]string{desired.Tenant: {"contacts"}},
		Ignored:   map[desired.Kind][]string{desired.Tenant: {"once"}},
		Same: func(o desired.Object, field string) (bool, bool) {
			return o.Name == "asked", o.Name == "asked" || o.Name == "hidden" && field == ""
		},
		Secret: func(_ desired.Object, field string) bool { return field == "token" },
		Prune:  func(o desired.Object) bool { return o.Name == "dropped" },
	})
	type step struct {
		action desired.Action
		kind   desired.Kind
		name   string
		fields []desired.Difference
	}
	var got []step
	for _, c := range plan {
		got = append(got, step{c.Action, c.Kind, c.Name, c.Fields})
	}
	want := []step{
		{desired.Update, desired.Tenant, "other", []desired.Difference{
			{Field: "n", From: json.Number("1"), To: json.Number("2")},
			{Field: "policy.a", From: true, To: false},
			{Field: "token", Secret: true},
		}},
		{desired.Create, desired.Endpoint, "new", nil},
		{desired.Update, desired.Endpoint, "hidden", []desired.Difference{{Field: "write-only values", Secret: true}}},
		{desired.Delete, desired.Endpoint, "dropped", nil},
		{desired.Delete, desired.Tenant, "dropped", nil},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("planned\n%+v\nwant\n%+v", got, want)
	}
}

func TestNumbersAreEqualByValue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b  string
		equal bool
	}{
		{"1", "1.0", true},
		{"1e2", "100", true},
		{"9007199254740993", "9007199254740992", false},
		{"0.1", "0.10", true},
		{"1", "2", false},
		{"1e999999999", "1e999999998", false},
	} {
		if got := desired.Equal(json.Number(c.a), json.Number(c.b)); got != c.equal {
			t.Errorf("%s and %s: equal %t", c.a, c.b, got)
		}
	}
}

// After a plan was applied, the next plan is empty, for every earlier state.
func TestAPlanThatWasDoneLeavesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		objects := rapid.SliceOfDistinct(rapid.Custom(func(t *rapid.T) desired.Object {
			fields := rapid.MapOf(rapid.SampledFrom([]string{"a", "b", "c"}), rapid.Custom(func(t *rapid.T) any {
				return rapid.SampledFrom([]any{nil, true, "x", json.Number("1"), []any{"x"}, map[string]any{"y": "z"}}).Draw(t, "value")
			})).Draw(t, "fields")
			kind := rapid.SampledFrom([]desired.Kind{desired.Tenant, desired.Endpoint, desired.Key}).Draw(t, "kind")
			return object(kind, rapid.SampledFrom([]string{"m", "n", "o"}).Draw(t, "name"), fields)
		}), func(o desired.Object) string { return string(o.Kind) + o.Name })
		wanted, present := objects.Draw(t, "wanted"), objects.Draw(t, "present")
		rules := desired.Rules{Prune: func(desired.Object) bool { return true }}
		state := map[string]desired.Object{}
		for _, o := range present {
			state[string(o.Kind)+o.Name] = o
		}
		for _, c := range desired.Plan(wanted, present, rules) {
			key := string(c.Kind) + c.Name
			switch c.Action {
			case desired.Delete:
				delete(state, key)
			case desired.Create:
				state[key] = c.Wanted
			case desired.Update:
				fields := map[string]any{}
				for name, v := range state[key].Fields {
					fields[name] = v
				}
				for _, d := range c.Fields {
					fields[d.Field] = d.To
				}
				o := state[key]
				o.Fields = fields
				state[key] = o
			}
		}
		var after []desired.Object
		for _, o := range state {
			after = append(after, o)
		}
		if left := desired.Plan(wanted, after, rules); len(left) != 0 {
			t.Fatalf("left: %+v", left)
		}
	})
}
