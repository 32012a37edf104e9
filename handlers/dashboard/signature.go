package dashboard

import (
	"net/http"
	"net/textproto"
	"net/url"
	"strings"

	"posthorn/domain/access"
	"posthorn/domain/fault"
	"posthorn/domain/signature"
	"posthorn/handlers"
	"posthorn/views/components"
	"posthorn/views/pages"
)

func (a *dashboard) signatureRoutes() []handlers.Route {
	check := page("POST", "/signature", access.Read, a.checkSignature)
	check.MaxBody = 2 << 20
	return []handlers.Route{page("GET", "/signature", access.Read, a.showSignature), check}
}

func (a *dashboard) showSignature(c *handlers.Call) error {
	return c.Render(http.StatusOK, pages.Signature(a.signatureView(c, url.Values{"format": {string(signature.Standard)}}, nil)))
}

// signatureView is the form with the typed values, except for the secret, which no page repeats.
func (a *dashboard) signatureView(c *handlers.Call, form url.Values, wrong map[string]string) pages.SignatureView {
	v := pages.SignatureView{Root: path(c, ""), Wrong: wrong, Shell: c.Shell("Signature debugger", "signature")}
	v.Format = components.FieldProps{Name: "format", Label: "Format", Value: form.Get("format"), Error: wrong["format"]}
	v.Formats = pages.FormatOptions()
	for _, p := range signature.Presets() {
		v.Formats = append(v.Formats, components.Option{Value: presetMark + p.Name, Label: "as " + p.Name + " (preset)"})
	}
	v.Fields = []components.FieldProps{
		{Name: "secret", Label: "Signing secret", Type: "password", Complete: "off", Error: wrong["secret"], Required: true, Mono: true, Placeholder: "whsec_…", Hint: "The endpoint's secret, as installed in the receiver. Used only for this check."},
		{
			Name:        "prefix",
			Label:       "Header prefix",
			Value:       form.Get("prefix"),
			Error:       wrong["prefix"],
			Optional:    true,
			Mono:        true,
			Placeholder: signature.DefaultPrefix,
			Hint:        "Only if the endpoint uses a custom prefix.",
		},
	}
	v.Headers = components.FieldProps{
		Name:        "headers",
		Label:       "Headers",
		Value:       form.Get("headers"),
		Error:       wrong["headers"],
		Required:    true,
		Mono:        true,
		Rows:        6,
		Placeholder: "webhook-id: evt_…\nwebhook-timestamp: 1767323045\nwebhook-signature: v1,…",
		Hint:        "One per line, as name: value.",
	}
	v.Body = components.FieldProps{Name: "body", Label: "Body", Value: form.Get("body"), Error: wrong["body"], Mono: true, Rows: 10, Hint: "The exact bytes, before any parsing. Even one extra space changes the signature."}
	return v
}

// presetMark starts the values of choices that are presets. A preset can have the name of a format.
const presetMark = "preset:"

// chosenWire reads a choice of a format or a preset.
func chosenWire(choice, prefix string) (signature.Wire, bool) {
	if name, preset := strings.CutPrefix(choice, presetMark); preset {
		p, ok := signature.PresetNamed(name)
		return p.Wire(), ok
	}
	f := signature.Format(choice)
	return signature.Wire{Format: f, Prefix: prefix}, f.Valid() && f != signature.Templated
}

// maxShownBody bounds how many bytes of a body a page repeats.
const maxShownBody = 32 << 10

// checkSignature checks the pasted request. Nothing of it is stored or logged.
func (a *dashboard) checkSignature(c *handlers.Call) error {
	form, err := c.Form()
	if err != nil {
		return err
	}
	headers, err := readHeaders(form.Get("headers"))
	prefix := strings.TrimSpace(form.Get("prefix"))
	wire, known := chosenWire(form.Get("format"), prefix)
	var wrong []fault.Field
	add := func(err error) {
		if e := fault.As(err); e != nil {
			wrong = append(wrong, e.Fields...)
		}
	}
	add(err)
	if !known {
		add(fault.InvalidField("format", "format_unknown", "Unknown format. Use standard, x-webhook, t-v1, body-hex, or raw."))
	}
	if prefix != "" {
		add(signature.ValidPrefix(prefix))
	}
	body := strings.ReplaceAll(form.Get("body"), "\r\n", "\n") // forms send CR LF
	if len(body) > maxShownBody {
		form.Set("body", "")
	}
	if len(wrong) > 0 {
		return c.Render(http.StatusBadRequest, pages.Signature(a.signatureView(c, form, handlers.WrongFields(fault.InvalidFields(wrong)))))
	}
	v := a.signatureView(c, form, nil)
	v.Findings, v.Good = wire.Debug(headers.Get, []byte(body), strings.TrimSpace(form.Get("secret")), a.Now(), signature.DefaultTolerance)
	return c.Render(http.StatusOK, pages.Signature(v))
}

// readHeaders reads pasted lines of name and value. It removes what curl and browsers add to them.
func readHeaders(text string) (http.Header, error) {
	h := http.Header{}
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\r", ""), "\n") {
		line = strings.TrimSpace(line)
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(line, "<"), ">"))
		if line == "" || strings.HasPrefix(line, "POST ") || strings.HasPrefix(line, "HTTP/") {
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, " \t") {
			return nil, fault.InvalidField("headers", "headers_malformed", "Enter one header per line, such as webhook-id: evt_…")
		}
		h[textproto.CanonicalMIMEHeaderKey(name)] = []string{strings.TrimSpace(value)}
	}
	return h, nil
}
