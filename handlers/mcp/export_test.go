package mcp

import "posthorn/domain/access"

// Row is a tool as the tests of the table see it.
type Row struct {
	Name, Method, Path string
	Scope              access.Scope
	Choices            map[string][]string // of each argument; nil: any value
}

// Rows are the tools that are calls of the API.
func Rows() (rows []Row) {
	for _, t := range tools {
		if t.run != nil {
			continue
		}
		r := Row{t.Name, t.method, t.path, t.scope, map[string][]string{}}
		for _, a := range t.args {
			r.Choices[a.name] = a.choices
		}
		rows = append(rows, r)
	}
	return rows
}
