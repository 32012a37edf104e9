package dashboard_test

import (
	"net/url"
	"testing"

	"posthorn/domain/access"
	"posthorn/domain/endpoint"
	"posthorn/domain/id"
	"posthorn/domain/signature"
)

func TestTheSignatureDebuggerKnowsThePresets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	viewer := tn.of[access.Viewer]
	viewer.get(tn.path+"/signature").want(200, "as github (preset)", "as svix (preset)")
	form := url.Values{
		"format":  {"preset:github"},
		"secret":  {"It's a Secret to Everybody"},
		"body":    {"Hello, World!"},
		"headers": {"X-Hub-Signature-256: sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"},
	}
	viewer.post(tn.path+"/signature", form).want(200, "Valid signature")
	form.Set("body", "Hello, World")
	viewer.post(tn.path+"/signature", form).want(200, "Invalid signature")
	form.Set("format", "preset:none")
	viewer.post(tn.path+"/signature", form).want(400, "Unknown format")
}

// An endpoint's format does not change when its settings are saved, although the form offers templates only for their
// own endpoints.
func TestTheSettingsOfAnEndpointOfferItsOwnTemplate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tn := w.tenant("A")
	own := w.endpoint(tn, "https://a.example.com/hooks", func(s *endpoint.Settings) {
		s.Format, s.Shape = signature.Templated, &signature.Shape{Signature: &signature.Template{Value: "{hex}", Content: "{body}"}}
	})
	other := w.endpoint(tn, "https://b.example.com/hooks")
	developer := tn.of[access.Developer]
	developer.get(tn.path+"/endpoints/"+id.Endpoint.Format(own)+"/settings").want(200, "Own template (template)")
	developer.get(tn.path+"/endpoints/"+id.Endpoint.Format(other)+"/settings").want(200, "Standard Webhooks").lacks("Own template")
}
