package pages

import (
	"slices"
	"strings"

	"posthorn/domain/endpoint"
	"posthorn/views/components"
)

// ConnectionForm holds the fields of connections, as typed.
type ConnectionForm struct {
	Use    endpoint.Use
	Values map[string]string // by the names of fields in forms
	Wrong  map[string]string // errors by the field's name in the API
}

// lines are the rows of a kind, those that share a line together.
func (f ConnectionForm) lines(k endpoint.Kind) (lines [][]endpoint.ConnectionField) {
	var last endpoint.ConnectionField
	for _, row := range endpoint.ConnectionFields(k, f.Use) {
		if row.Beside && last.Beside {
			lines[len(lines)-1] = append(lines[len(lines)-1], row)
		} else {
			lines = append(lines, []endpoint.ConnectionField{row})
		}
		last = row
	}
	return lines
}

// when is the choice with which a row is shown; empty: always.
func (f ConnectionForm) when(row endpoint.ConnectionField) string {
	rows := endpoint.ConnectionFields(row.Kind, f.Use)
	i := slices.IndexFunc(rows, func(r endpoint.ConnectionField) bool { return r.Name == row.With })
	if i < 0 {
		return ""
	}
	var values []string
	for _, o := range rows[i].Options {
		if o.Value != "" {
			values = append(values, o.Value)
		}
	}
	return rows[i].Form() + "=" + strings.Join(values, "|")
}

// props are the properties of a row's input.
func (f ConnectionForm) props(row endpoint.ConnectionField) components.FieldProps {
	p := components.FieldProps{
		Name:        row.Form(),
		Label:       row.Label,
		Value:       f.Values[row.Form()],
		Hint:        row.Hint,
		Placeholder: row.Placeholder,
		Optional:    row.Optional && row.With == "",
		Mono:        true,
		MaxLength:   row.High,
		Error:       f.Wrong[row.API()],
	}
	if endpoint.ConnectionForm(string(row.Kind)) == p.Name {
		p.Error += f.Wrong[string(row.Kind)]
	}
	switch {
	case row.Secret:
		p.Type, p.Complete, p.Mono, p.Hint = "password", "new-password", false, passwordHint(p.Value != "")
		p.Value = ""
	case row.File:
		p.Rows = 4
	case row.Type == endpoint.List:
		p.Rows = 2
	case row.Beside:
		p.Complete = "off"
	}
	return p
}

func connectionOptions(row endpoint.ConnectionField) (out []components.Option) {
	for _, o := range row.Options {
		out = append(out, components.Option{Value: o.Value, Label: o.Label})
	}
	return out
}
