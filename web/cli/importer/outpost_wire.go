package importer

import (
	"regexp"
	"strings"
)

// outpostPrefix is the prefix of an Outpost server's headers.
func outpostPrefix(config map[string]string) string {
	if prefix, given := config["DESTINATIONS_WEBHOOK_HEADER_PREFIX"]; given {
		return strings.TrimSpace(prefix)
	}
	if config["DESTINATIONS_WEBHOOK_MODE"] == "standard" {
		return "webhook-"
	}
	return "x-outpost-"
}

// outpostWire is how a server signs, as settings of an endpoint.
func outpostWire(config map[string]string) (map[string]any, error) {
	prefix := outpostPrefix(config)
	if config["DESTINATIONS_WEBHOOK_MODE"] == "standard" {
		wire := map[string]any{"body": "payload"}
		if prefix != "webhook-" {
			wire["header_names"] = map[string]string{"id": prefix + "id", "timestamp": prefix + "timestamp", "signature": prefix + "signature"}
		}
		return map[string]any{"format": "standard", "wire": wire}, nil
	}
	setting := func(name, otherwise string) string {
		if value, given := config["DESTINATIONS_WEBHOOK_"+name]; given && value != "" {
			return value
		}
		return otherwise
	}
	header := func(name, key string) string {
		if pinned, given := config["DESTINATIONS_WEBHOOK_"+name+"_HEADER_NAME"]; given {
			return pinned // empty leaves it out
		}
		return prefix + key
	}
	signature := header("SIGNATURE", "signature")
	if signature == "" {
		return nil, failf("This Outpost signs nothing: its signature header is off. Turn it on, or import the endpoints with `posthorn import FILE`.")
	}
	algorithm := setting("SIGNATURE_ALGORITHM", "hmac-sha256")
	if algorithm == "hmac-md5" {
		return nil, failf("This Outpost signs with HMAC-MD5, which Posthorn does not. Let it sign with hmac-sha256 before you move.")
	}
	value, err := outpostTemplate(setting("SIGNATURE_HEADER_TEMPLATE", `v0={{.Signatures | join ","}}`), setting("SIGNATURE_ENCODING", "hex"))
	if err != nil {
		return nil, err
	}
	content, err := outpostTemplate(setting("SIGNATURE_CONTENT_TEMPLATE", "{{.Body}}"), "")
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"format": "template",
		"prefix": "Outpost",
		"wire": map[string]any{
			"body":      "payload",
			"signature": map[string]string{"value": value, "content": content, "algorithm": algorithm},
			"header_names": map[string]string{
				"signature": signature,
				"id":        header("EVENT_ID", "event-id"),
				"event":     header("TOPIC", "topic"),
				"timestamp": header("TIMESTAMP", "timestamp"),
				"delivery":  "",
			},
			"timestamp": "rfc3339",
		},
	}, nil
}

// An action of a Go template, and those that have a placeholder. Outpost writes one signature for each live secret;
// Posthorn writes one.
var (
	templateAction   = regexp.MustCompile(`\{\{-?\s*(.*?)\s*-?\}\}`)
	outpostTemplates = map[string]string{
		".Body":                  "{body}",
		".EventID":               "{id}",
		".Timestamp.Unix":        "{ts}",
		`.Signatures | join ","`: "{signature}",
		`join "," .Signatures`:   "{signature}",
		"index .Signatures 0":    "{signature}",
		`.Signatures | join " "`: "{signature}",
		"first .Signatures":      "{signature}",
		".Signatures | first":    "{signature}",
	}
)

// outpostTemplate translates a template of Outpost's.
func outpostTemplate(text, encoding string) (string, error) {
	var unknown string
	out := templateAction.ReplaceAllStringFunc(text, func(action string) string {
		placeholder, known := outpostTemplates[templateAction.FindStringSubmatch(action)[1]]
		if !known {
			unknown = action
		}
		if placeholder == "{signature}" {
			return "{" + encoding + "}"
		}
		return placeholder
	})
	if unknown != "" {
		return "", failf("Outpost's template %s has no equivalent: %s. Sign with another template there, or import the endpoints with `posthorn import FILE`.", text, unknown)
	}
	return out, nil
}
