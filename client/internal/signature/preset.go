// Code generated from domain/signature/preset.go. DO NOT EDIT.

package signature

// Preset is how another sender's receivers expect their webhooks.
type Preset struct {
	Name   string
	Format Format
	Prefix string
	Shape  *Shape
}

// Presets lists the presets. The body is the payload itself: what a company puts into its events is its own.
func Presets() []Preset {
	return []Preset{
		{Name: "svix", Format: Standard, Shape: &Shape{Body: bodyPayload, HeaderPrefix: "svix-"}},
		{Name: "standard-webhooks", Format: Standard, Shape: &Shape{Body: bodyPayload}},
		{Name: "stripe", Format: TV1, Prefix: "Stripe", Shape: &Shape{Body: bodyPayload}},
		{
			Name:   "github",
			Format: Templated,
			Shape: &Shape{
				Body:         bodyPayload,
				HeaderPrefix: "X-GitHub-",
				HeaderNames:  map[string]string{"signature": "X-Hub-Signature-256", "timestamp": ""},
				Signature:    &Template{Value: "sha256={hex}", Content: "{body}"},
				AlsoSign: &AlsoSign{
					Format:      Templated,
					HeaderNames: onlySignature("X-Hub-Signature"),
					Signature:   &Template{Value: "sha1={hex}", Content: "{body}", Algorithm: hmacSHA1},
				},
			},
		},
		{
			Name:   "shopify",
			Format: Templated,
			Shape: &Shape{
				Body:         bodyPayload,
				HeaderPrefix: "X-Shopify-",
				HeaderNames: map[string]string{
					"signature": "X-Shopify-Hmac-Sha256",
					"event":     "X-Shopify-Topic",
					"id":        "X-Shopify-Event-Id",
					"delivery":  "X-Shopify-Webhook-Id",
					"timestamp": "",
				},
				Signature: &Template{Value: "{base64}", Content: "{body}"},
			},
		},
		{
			Name:   "slack",
			Format: Templated,
			Shape: &Shape{
				Body:         bodyPayload,
				HeaderPrefix: "X-Slack-",
				HeaderNames:  map[string]string{"timestamp": "X-Slack-Request-Timestamp"},
				Signature:    &Template{Value: "v0={hex}", Content: "v0:{ts}:{body}"},
			},
		},
	}
}

// onlySignature are the names of headers of which only the signature is sent.
func onlySignature(name string) map[string]string {
	names := make(map[string]string, len(roles))
	for _, role := range roles {
		names[role] = ""
	}
	names["signature"] = name
	return names
}

// PresetNamed finds a preset; the names of formats are presets too, which change nothing about their format.
func PresetNamed(name string) (Preset, bool) {
	for _, p := range Presets() {
		if p.Name == name {
			return p, true
		}
	}
	if f := Format(name); f.Valid() && f != Templated {
		return Preset{Name: name, Format: f}, true
	}
	return Preset{}, false
}

// PresetNames lists what PresetNamed knows.
func PresetNames() []string {
	var out []string
	for _, p := range Presets() {
		out = append(out, p.Name)
	}
	for _, f := range Formats() {
		if f != Templated {
			out = append(out, string(f))
		}
	}
	return out
}

// Wire is how the preset renders and signs.
func (p Preset) Wire() Wire { return Wire{Format: p.Format, Prefix: p.Prefix, Shape: p.Shape} }
