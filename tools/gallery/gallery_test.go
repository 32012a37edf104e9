package gallery_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/a-h/templ"

	"posthorn/tools/gallery"
	"posthorn/tools/pagetest"
	"posthorn/views/components"
	"posthorn/views/layout"
)

func render(t *testing.T, c templ.Component) string {
	t.Helper()
	var b strings.Builder
	if err := c.Render(components.WithNow(t.Context(), gallery.Now), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func pages() map[string]templ.Component {
	shell := gallery.Shell()
	portal := layout.Shell{
		Brand:  "Northwind",
		Accent: "c2410c",
		Portal: true,
		Return: "https://northwind.example/",
		Tenant: layout.Tenant{ID: "ten_x", Name: "Acme"},
		Role:   "viewer",
		View:   &layout.View{Reason: "ticket 4711"},
	}
	return map[string]templ.Component{
		"gallery": gallery.Page(shell),
		"console": layout.Console(shell, heading),
		"bare":    layout.Bare(layout.Shell{Title: "Sign in"}, heading),
		"account": layout.Account(shell, heading),
		"portal":  layout.Page(portal, heading),
		"error":   layout.Error(layout.Shell{Title: "Not found"}, layout.Refusal{Status: 404, Code: "not_found", Detail: "No such object. Check the id. Ids of other tenants return the same error.", RequestID: "req_01m7y96znbemp9ae4ykb5p4h7j"}),
	}
}

var heading = components.PageHeader(components.HeaderProps{Title: "A page"})

func TestEveryComponentIsAccessibleAndHasNothingInline(t *testing.T) {
	t.Parallel()
	for name, page := range pages() {
		html := render(t, page)
		for _, fault := range pagetest.Faults(html) {
			t.Errorf("%s: %s", name, fault)
		}
		if to := os.Getenv("POSTHORN_GALLERY"); to != "" {
			if err := os.WriteFile(filepath.Join(to, name+".html"), []byte(html), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestWhatPeopleTypedShowsAsText(t *testing.T) {
	t.Parallel()
	evil := `"><script>alert(1)</script>`
	shell := gallery.Shell()
	shell.Tenant.Name, shell.Person.Name, shell.Title, shell.Flash.Text, shell.Return = evil, evil, evil, evil, "javascript:alert(1)"
	shell.Portal = true
	content := templ.Join(
		components.Input(components.FieldProps{Name: "x", Label: evil, Value: evil, Error: evil, Hint: evil}),
		components.Code(components.CodeProps{ID: "c", Label: evil, Text: evil}),
		components.PageHeader(components.HeaderProps{Title: evil, Crumbs: []components.Crumb{{Label: evil, Href: "javascript:alert(1)"}}}),
		components.CopyField("d", evil, evil, ""),
	)
	html := render(t, layout.Page(shell, content))
	if strings.Contains(html, "<script>alert") || strings.Contains(html, "javascript:") {
		t.Error("what was typed became markup")
	}
}
