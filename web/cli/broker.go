package cli

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"posthorn/domain/endpoint"
)

// connection are the flags of a connection to a broker or a store: one for each flag in the table of connections.
type connection struct {
	Flags kong.Plugins `embed:""`
	use   endpoint.Use
}

// connectionFlags are the rows of a use that have a flag, the first of each.
func connectionFlags(use endpoint.Use) (rows []endpoint.ConnectionField) {
	known := map[string]bool{"": true}
	for _, f := range endpoint.ConnectionFields("", use) {
		if !known[f.Flag] {
			known[f.Flag], rows = true, append(rows, f)
		}
	}
	return rows
}

// newConnection has a field for each flag.
func newConnection(use endpoint.Use) connection {
	var fields []reflect.StructField
	for i, f := range connectionFlags(use) {
		help, kind, placeholder := f.Help, reflect.TypeFor[*string](), "TEXT"
		switch {
		case f.Type == endpoint.List:
			kind, placeholder = reflect.TypeFor[[]string](), "HOST:PORT"
		case f.Type == endpoint.Switch:
			placeholder = "on|off"
		case f.Secret || f.File:
			placeholder = "@FILE"
		}
		if f.Names && use == endpoint.ToEndpoint && endpoint.ConnectionForm(string(f.Kind)) == f.Form() {
			help += " Events go there instead of to a URL."
		}
		tag := fmt.Sprintf("name:%q help:%q placeholder:%q", f.Flag, help, placeholder)
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("C%d", i), Type: kind, Tag: reflect.StructTag(tag)})
	}
	return connection{Flags: kong.Plugins{reflect.New(reflect.StructOf(fields)).Interface()}, use: use}
}

// given are the values of the flags that were given, by the name of the flag.
func (c connection) given() map[string]any {
	values := map[string]any{}
	flags := reflect.ValueOf(c.Flags[0]).Elem()
	for i, f := range connectionFlags(c.use) {
		switch v := flags.Field(i).Interface().(type) {
		case []string:
			if len(v) > 0 {
				values[f.Flag] = v
			}
		case *string:
			if v != nil {
				values[f.Flag] = *v
			}
		}
	}
	return values
}

// kinds are the kinds that have all flags that were given, one that the body has a connection of first.
func (c connection) kinds(given, fields map[string]any) (kinds []endpoint.Kind) {
	for _, kind := range endpoint.Kinds() {
		has := map[string]bool{}
		for _, f := range endpoint.ConnectionFields(kind, c.use) {
			has[f.Flag] = true
		}
		all := true
		for flag := range given {
			all = all && has[flag]
		}
		if _, is := fields[string(kind)].(map[string]any); all && is {
			return []endpoint.Kind{kind}
		} else if all && len(has) > 0 {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// set writes the flags over a body's connection, and returns its kind; empty: no flag was given. Where several kinds
// have them, known is asked for the kind; nil: nobody knows.
func (c connection) set(ctx context.Context, e *Env, fields map[string]any, known func() (string, error)) (string, error) {
	given := c.given()
	if len(given) == 0 {
		return "", nil
	}
	kinds := c.kinds(given, fields)
	if len(kinds) == 0 {
		return "", fail(ExitUsage, "--%s are of different kinds. Use those of one.", strings.Join(slices.Sorted(maps.Keys(given)), " and --"))
	}
	kind := kinds[0]
	if len(kinds) > 1 && known != nil {
		of, err := known()
		if err != nil {
			return "", err
		}
		if slices.Contains(kinds, endpoint.Kind(of)) {
			kind = endpoint.Kind(of)
		}
	}
	into, ok := fields[string(kind)].(map[string]any)
	if !ok {
		into = map[string]any{}
		fields[string(kind)] = into
	}
	for _, f := range endpoint.ConnectionFields(kind, c.use) {
		value, is := given[f.Flag]
		if !is {
			continue
		}
		value, err := flagValue(ctx, e, f, value)
		if err != nil {
			return "", err
		}
		f.Put(into, value)
	}
	if sasl, is := into["sasl"].(map[string]any); is && (sasl["mechanism"] == nil || sasl["username"] == nil) {
		return "", fail(ExitUsage, "--sasl, --user and --password go together.")
	}
	return string(kind), nil
}

// flagValue is a flag's value as the API takes it.
func flagValue(ctx context.Context, e *Env, f endpoint.ConnectionField, value any) (any, error) {
	text, is := value.(string)
	switch {
	case !is:
		return value, nil
	case f.Type == endpoint.Switch && text != "on" && text != "off":
		return nil, fail(ExitUsage, "--%s is on or off.", f.Flag)
	case f.Type == endpoint.Switch:
		return text == "on", nil
	case f.Type == endpoint.Choice && text != "none":
		return strings.ToUpper(text), nil
	case f.File && text == "none":
		return nil, nil
	case f.File || f.Secret:
		read, err := input(ctx, e, text, nothing)
		return string(read), err
	}
	return text, nil
}

// named checks that the connection in a body names where it leads.
func (c connection) named(kind string, fields map[string]any) error {
	into, _ := fields[kind].(map[string]any)
	var missing []string
	for _, f := range endpoint.ConnectionFields(endpoint.Kind(kind), c.use) {
		if !f.Optional && f.Type != endpoint.Switch && into[f.Name] == nil {
			missing = append(missing, "--"+f.Flag)
		}
	}
	if len(missing) > 0 {
		return fail(ExitUsage, "A connection to %s also needs %s.", kind, strings.Join(missing, ", "))
	}
	return nil
}
