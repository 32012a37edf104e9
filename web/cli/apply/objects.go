package apply

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"posthorn/client"
	"posthorn/domain/account"
	"posthorn/domain/endpoint"
	"posthorn/domain/inbox"
	"posthorn/web/cli/desired"
)

// top reads the file's top level.
func (d *decoder) top(top map[string]any) {
	d.rejectUnknown(top, "", topFields)
	if v, ok := top["version"]; ok && v != json.Number("1") {
		d.problem("version", "This version of Posthorn reads files of version 1.")
	}
	if v, ok := top["platform"]; ok {
		d.platform(v)
	}
	if v, ok := top["tenants"]; ok {
		list := d.list(v, "tenants")
		for i, entry := range list {
			d.tenant(entry, fmt.Sprintf("tenants[%d]", i))
		}
		d.file.lists[listName("", desired.Tenant)] = true
	} else if top["platform"] == nil {
		d.refuse(1, "", "The file has neither `tenants` nor `platform`.")
	}
}

func listName(tenant string, kind desired.Kind) string { return tenant + "\x00" + string(kind) }

func objectName(o desired.Object) string { return listName(o.Tenant, o.Kind) + "\x00" + o.Name }

// add takes an object in, once.
func (d *decoder) add(o desired.Object, path string) {
	if first, twice := d.file.paths[objectName(o)]; twice {
		d.problem(path, fmt.Sprintf("%s is in the file twice; the first is in line %d.", o.Name, d.file.line(first)))
		return
	}
	d.file.paths[objectName(o)] = path
	d.file.objects = append(d.file.objects, o)
}

func (d *decoder) list(v any, path string) []any {
	list, ok := v.([]any)
	if !ok && v != nil {
		d.problem(path, "This must be a list.")
	}
	return list
}

func (d *decoder) fields(v any, path string) map[string]any {
	fields, ok := v.(map[string]any)
	if !ok {
		d.problem(path, "This must be a mapping of fields.")
		return nil
	}
	return fields
}

// platform reads the settings of the platform. Numbers and switches are texts for the API.
func (d *decoder) platform(v any) {
	fields := d.fields(v, "platform")
	if fields == nil {
		return
	}
	d.rejectUnknown(fields, "platform", platformFields)
	if value, ok := fields["settings"]; ok {
		all := d.fields(value, "platform.settings")
		for name, value := range all {
			switch value := value.(type) {
			case json.Number:
				all[name] = string(value)
			case bool:
				all[name] = map[bool]string{true: "on", false: "off"}[value]
			case string, nil:
			default:
				d.problem("platform.settings."+name, "A setting is a text or a number.")
			}
		}
	}
	d.add(desired.Object{Kind: desired.Platform, Name: "settings", Fields: fields}, "platform")
}

// nameOf is a field that names an object.
func (d *decoder) nameOf(fields map[string]any, path, field, fix string) (string, bool) {
	name, ok := fields[field].(string)
	if !ok || strings.TrimSpace(name) == "" {
		d.problem(join(path, field), fix)
		return "", false
	}
	return name, true
}

// normalizeContacts writes addresses as the server does.
func normalizeContacts(fields map[string]any) {
	contacts, _ := fields["contacts"].([]any)
	for i, contact := range contacts {
		if text, ok := contact.(string); ok {
			contacts[i] = address(text)
		}
	}
}

func (d *decoder) tenant(v any, path string) {
	fields := d.fields(v, path)
	if fields == nil {
		return
	}
	d.rejectUnknown(fields, path, tenantFields)
	by := "external_id"
	if fields[by] == nil {
		by = "name"
	}
	name, ok := d.nameOf(fields, path, by, "A tenant needs an external_id of your own, by which it is found again. A tenant that exists can be named by its name.")
	if !ok {
		return
	}
	o := desired.Object{Kind: desired.Tenant, Name: name, Fields: map[string]any{}}
	for field, value := range fields {
		switch field {
		case "id":
			o.ID, _ = value.(string)
		case "endpoints", "event_types", "sources", "members", "keys", "sso":
		default:
			o.Fields[field] = value
		}
	}
	normalizeContacts(o.Fields)
	fits[client.TenantPatch](d, o.Fields, path, "limits", "mcp_access", "suspended")
	if suspended, ok := o.Fields["suspended"]; ok {
		if _, is := suspended.(bool); !is {
			d.problem(join(path, "suspended"), "This must be true or false.")
		}
	}
	if limits, ok := o.Fields["limits"]; ok {
		if parts := d.fields(limits, join(path, "limits")); parts != nil {
			d.rejectUnknown(parts, join(path, "limits"), fieldsOf[client.TenantLimitsPatch]())
			fits[client.TenantLimitsPatch](d, parts, join(path, "limits"))
		}
	}
	if signIn, ok := o.Fields["mcp_access"]; ok {
		if parts := d.fields(signIn, join(path, "mcp_access")); parts != nil {
			d.rejectUnknown(parts, join(path, "mcp_access"), fieldsOf[client.MCPAccessPatch]())
			fits[client.MCPAccessPatch](d, parts, join(path, "mcp_access"))
		}
	}
	normalizeRetries(o.Fields)
	d.add(o, path)
	if value, ok := fields["sso"]; ok {
		d.sso(value, name, join(path, "sso"))
	}
	for _, part := range []struct {
		field string
		kind  desired.Kind
		read  func(fields map[string]any, path string) (desired.Object, bool)
	}{
		{"event_types", desired.EventType, d.eventType},
		{"endpoints", desired.Endpoint, d.endpoint},
		{"sources", desired.Source, d.source},
		{"members", desired.Member, d.member},
		{"keys", desired.Key, d.key},
	} {
		entries, ok := fields[part.field]
		if !ok {
			continue
		}
		d.file.lists[listName(name, part.kind)] = true
		for i, entry := range d.list(entries, join(path, part.field)) {
			at := fmt.Sprintf("%s[%d]", join(path, part.field), i)
			values := d.fields(entry, at)
			if values == nil {
				continue
			}
			if o, ok := part.read(values, at); ok {
				o.Kind, o.Tenant = part.kind, name
				d.add(o, at)
			}
		}
	}
}

// sso reads a tenant's single sign-on. null is none, which deletes it with --prune.
func (d *decoder) sso(v any, tenant, path string) {
	d.file.lists[listName(tenant, desired.SSO)] = true
	if v == nil {
		return
	}
	fields := d.fields(v, path)
	if fields == nil {
		return
	}
	d.rejectUnknown(fields, path, ssoFields)
	fits[client.SSOPatch](d, fields, path)
	for i, domain := range d.list(fields["domains"], join(path, "domains")) {
		text, ok := domain.(string)
		if ok && text != strings.ToLower(text) {
			d.problem(join(path, "domains"), "Write domains in lower case.")
		}
		if email, err := account.Email("a@" + text); ok && err == nil {
			fields["domains"].([]any)[i] = account.Shown(strings.TrimPrefix(email, "a@"))
		}
	}
	d.add(desired.Object{Kind: desired.SSO, Tenant: tenant, Name: ssoName, Fields: fields}, path)
}

// ssoName is what the one object of its kind is called within its tenant.
const ssoName = "single sign-on"

func (d *decoder) eventType(fields map[string]any, path string) (o desired.Object, ok bool) {
	d.rejectUnknown(fields, path, eventTypeFields)
	fits[client.EventTypeInput](d, fields, path)
	o.Fields = fields
	o.Name, ok = d.nameOf(fields, path, "name", "An event type needs a name, such as order.completed.")
	return o, ok
}

func (d *decoder) endpoint(fields map[string]any, path string) (o desired.Object, ok bool) {
	d.rejectUnknown(fields, path, endpointFields)
	fits[client.EndpointInput](d, fields, path, "answer", "id", "paused")
	if paused, ok := fields["paused"]; ok {
		if _, is := paused.(bool); !is {
			d.problem(join(path, "paused"), "This must be true or false.")
		}
	}
	o.ID, _ = fields["id"].(string)
	delete(fields, "id")
	if fields["kind"] == "listen" {
		d.problem(join(path, "kind"), "A listener ends with its program and can't be in a file. The kinds of a file are http, kafka, rabbitmq, sqs, s3, inbox, and feed.")
	}
	d.inbox(fields, path)
	normalizeRetries(fields)
	o.Fields = fields
	o.Name, ok = d.nameOf(fields, path, "external_id", "An endpoint needs an external_id of your own, by which it is found again, such as customer-42/hook-1.")
	return o, ok
}

// inbox reads the response of a test inbox. The server assigns the URL and the secret.
func (d *decoder) inbox(fields map[string]any, path string) {
	is := fields["kind"] == "inbox"
	if status, ok := fields["answer"].(json.Number); ok {
		fields["answer"] = string(status)
	}
	if answer, ok := fields["answer"]; ok && !is {
		d.problem(join(path, "answer"), "Only an endpoint of the kind inbox has this field.")
	} else if text, _ := answer.(string); ok && !slices.Contains(inbox.Answers(), inbox.Answer(text)) {
		d.problem(join(path, "answer"), "Use 200, 500, 410, or slow.")
	}
	for _, field := range []string{"assume_verified", "secret", "send_verification", "url"} {
		if _, ok := fields[field]; ok && is {
			d.problem(join(path, field), "The server sets this for a test inbox. Leave it out.")
		}
	}
}

// normalizeRetries writes a schedule of one's own as the API shows it.
func normalizeRetries(fields map[string]any) {
	retries, ok := fields["retry_policy"].(map[string]any)
	if !ok {
		return
	}
	if _, own := retries["delays"]; own {
		retries["name"] = "custom"
		if retries["spread"] == endpoint.SpreadFull {
			retries["jitter"] = json.Number("1")
		} else if delete(retries, "spread"); retries["jitter"] == nil {
			retries["jitter"] = json.Number("0.1")
		}
	}
}

var roles = []string{"owner", "admin", "developer", "viewer"}

// address is an email address as the API shows it, so that both forms of an international domain are one.
func address(text string) string {
	email, err := account.Email(text)
	if err != nil {
		return strings.ToLower(text)
	}
	return account.Shown(email)
}

func (d *decoder) member(fields map[string]any, path string) (o desired.Object, ok bool) {
	d.rejectUnknown(fields, path, memberFields)
	if role, _ := fields["role"].(string); !slices.Contains(roles, role) {
		d.problem(join(path, "role"), "The role must be one of "+strings.Join(roles, ", ")+".")
	}
	o.Name, ok = d.nameOf(fields, path, "email", "A member needs an email address.")
	o.Name = address(o.Name)
	o.Fields = map[string]any{"role": fields["role"]}
	return o, ok
}

// key reads an API key. Its scopes can't be changed, so they are part of what it is known by.
func (d *decoder) key(fields map[string]any, path string) (o desired.Object, ok bool) {
	d.rejectUnknown(fields, path, keyFields)
	fits[client.KeyInput](d, fields, path)
	name, ok := d.nameOf(fields, path, "name", "A key needs a name.")
	var scopes []string
	for _, s := range d.list(fields["scopes"], join(path, "scopes")) {
		text, _ := s.(string)
		scopes = append(scopes, text)
	}
	if len(scopes) == 0 {
		d.problem(join(path, "scopes"), "A key needs scopes, such as events:write.")
	}
	o.Name, o.Fields = keyName(name, scopes), fields
	return o, ok
}

func keyName(name string, scopes []string) string {
	scopes = slices.Clone(scopes)
	slices.Sort(scopes)
	return name + " (" + strings.Join(scopes, ", ") + ")"
}
