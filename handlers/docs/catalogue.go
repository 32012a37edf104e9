package docs

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/a-h/templ"

	"posthorn/db/sql"
	"posthorn/domain/catalogue"
	"posthorn/handlers"
	views "posthorn/views/docs"
)

// Catalogue reads the platform's own event types. on is false if they are not public. *db.DB's PublicCatalogue
// implements it.
type Catalogue func(context.Context) (types []sql.EventType, on bool, err error)

// showCatalogue shows the platform's own event types to everybody, if operators have made them public.
func (s *site) showCatalogue(call *handlers.Call) error {
	types, on, err := s.types(call.Ctx())
	switch {
	case err != nil:
		return err
	case !on:
		return errNoPage
	}
	page := views.Catalogue{}
	for _, t := range types {
		page.Types = append(page.Types, typeView(t))
	}
	return s.show(call, "Events", func(*content) (string, templ.Component) { return "", views.CataloguePage(page) })
}

func (s *site) types(ctx context.Context) ([]sql.EventType, bool, error) {
	if s.Catalogue == nil {
		return nil, false, nil
	}
	return s.Catalogue(ctx)
}

func typeView(t sql.EventType) views.EventType {
	v := views.EventType{
		Name: t.Name, Group: t.TypeGroup, Deprecated: t.Deprecated, Schema: pretty(t.Schema),
		Example: pretty(t.Example),
	}
	if t.Description != "" {
		v.About = prose(t.Description)
	}
	versions, _ := catalogue.DecodeVersions(t.Versions) // versions that can't be read are left out
	for _, name := range catalogue.VersionNames(versions) {
		schema, example := string(versions[name].Schema), string(versions[name].Example)
		v.Versions = append(v.Versions, views.EventVersion{
			Name: name, Schema: pretty(&schema), Example: pretty(&example),
		})
	}
	return v
}

// pretty is indented JSON; empty for none.
func pretty(text *string) string {
	if text == nil || *text == "" {
		return ""
	}
	var b bytes.Buffer
	if json.Indent(&b, []byte(*text), "", "  ") != nil {
		return *text
	}
	return b.String()
}
