package docs

import (
	"bytes"
	"context"
	"encoding/json"

	"posthorn/domain/catalogue"
	"posthorn/handlers"
	views "posthorn/views/docs"
)

// Catalogue reads the platform's own event types. on is false if they are not public
// (events.PublicCatalogue).
type Catalogue func(context.Context) (types []catalogue.Entry, on bool, err error)

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
	return s.show(call, "Events", func(*content) built { return built{body: views.CataloguePage(page)} })
}

func (s *site) types(ctx context.Context) ([]catalogue.Entry, bool, error) {
	if s.Catalogue == nil {
		return nil, false, nil
	}
	return s.Catalogue(ctx)
}

func typeView(t catalogue.Entry) views.EventType {
	v := views.EventType{
		Name:       t.Name,
		Group:      t.Group,
		Deprecated: t.Deprecated,
		Schema:     pretty(t.Schema),
		Example:    pretty(t.Example),
	}
	if t.Description != "" {
		v.About = prose(t.Description)
	}
	for _, name := range catalogue.VersionNames(t.Versions) {
		v.Versions = append(v.Versions, views.EventVersion{
			Name:    name,
			Schema:  pretty(t.Versions[name].Schema),
			Example: pretty(t.Versions[name].Example),
		})
	}
	return v
}

// pretty is indented JSON; empty for none.
func pretty(text json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, text, "", "  ") != nil {
		return string(text)
	}
	return b.String()
}
