package svix

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"posthorn/domain/fault"
	"posthorn/handlers"
)

// Operation is a row of the table of operations, as docs/svix.md shows it.
type Operation struct {
	Method, Path string
	Handler      handlers.Handler // nil: there is no equivalent
	Query        []string         // the parameters that it accepts
	Instead      string           // of one without an equivalent: what to use, or why there is none
}

func operation(method, path string, h handlers.Handler, query ...string) Operation {
	return Operation{Method: method, Path: path, Handler: h, Query: query}
}

func without(method, path, instead string) Operation {
	return Operation{Method: method, Path: path, Instead: instead}
}

// The parameters of lists.
var (
	paged    = []string{"limit", "iterator"}
	ordered  = append([]string{"order"}, paged...)
	messages = append([]string{"channel", "before", "after", "with_content", "event_types"}, paged...)
	statuses = append([]string{"status", expanded}, messages...)
	attempts = append([]string{"status_code_class"}, statuses...)
)

// expanded is whether canceled attempts have a status of their own. The libraries of the second line always send it. An
// attempt of Posthorn is never canceled: it happened.
const expanded = "expanded_statuses"

// operations is the table of docs/svix.md.
func (s *svix) operations() []Operation {
	return append([]Operation{
		operation("GET", "/app", s.listApps, ordered...),
		operation("POST", "/app", s.createApp, "get_if_exists"),
		operation("GET", appPath, s.getApp),
		operation("PUT", appPath, s.putApp),
		operation("PATCH", appPath, s.patchApp),
		operation("DELETE", appPath, s.deleteApp),

		operation("GET", appPath+"/endpoint", s.listEndpoints, ordered...),
		operation("POST", appPath+"/endpoint", s.createEndpoint),
		operation("GET", endpointPath, s.getEndpoint),
		operation("PUT", endpointPath, s.putEndpoint),
		operation("PATCH", endpointPath, s.patchEndpoint),
		operation("DELETE", endpointPath, s.deleteEndpoint),
		operation("GET", endpointPath+"/secret", s.getSecret),
		operation("POST", endpointPath+"/secret/rotate", s.rotateSecret),
		operation("GET", endpointPath+"/headers", s.getHeaders),
		operation("PUT", endpointPath+"/headers", s.putHeaders),
		operation("PATCH", endpointPath+"/headers", s.patchHeaders),
		operation("GET", endpointPath+"/transformation", s.getTransformation),
		operation("GET", endpointPath+"/stats", s.endpointStats, "since", "until"),
		operation("POST", endpointPath+"/recover", s.recoverEndpoint),
		operation("POST", endpointPath+"/replay-missing", s.replayMissing),
		operation("POST", endpointPath+"/send-example", s.sendExample),
		operation("GET", endpointPath+"/msg", s.listEndpointMessages, statuses...),

		operation("GET", pollerPath, s.poll, append([]string{"after"}, paged...)...),
		operation("GET", pollerPath+"/consumer/:consumer", s.pollConsumer, paged...),
		operation("POST", pollerPath+"/consumer/:consumer/seek", s.seekConsumer),
		operation("GET", offsetsPath, s.pollOffsets, "limit", "lease_duration_ms", "starting_position"),
		operation("POST", offsetsPath+"/commit", s.commitOffset),

		operation("GET", appPath+"/msg", s.listMessages, messages...),
		operation("POST", appPath+"/msg", s.createMessage, "with_content"),
		operation("GET", messagePath, s.getMessage, "with_content"),
		operation("DELETE", messagePath+"/content", s.expungeMessage),
		operation("GET", messagePath+"/endpoint", s.listDestinations, paged...),
		operation("POST", messagePath+"/endpoint/:"+handlers.EndpointParam+"/resend", s.resend),
		operation("GET", messagePath+"/attempt/:attempt_id", s.getAttempt, expanded),
		operation("GET", appPath+"/attempt/endpoint/:"+handlers.EndpointParam, s.listAttemptsByEndpoint, append([]string{"with_msg"}, attempts...)...),
		operation("GET", appPath+"/attempt/msg/:msg_id", s.listAttemptsByMessage, append([]string{"endpoint_id"}, attempts...)...),

		operation("GET", "/event-type", s.listEventTypes, append([]string{"include_archived", "with_content"}, ordered...)...),
		operation("POST", "/event-type", s.createEventType),
		operation("GET", "/event-type/:name", s.getEventType),
		operation("PUT", "/event-type/:name", s.putEventType),
		operation("PATCH", "/event-type/:name", s.patchEventType),
		operation("DELETE", "/event-type/:name", s.deleteEventType, "expunge"),

		operation("POST", "/auth/app-portal-access/:"+handlers.TenantParam, s.portalAccess),
		operation("POST", "/auth/logout", s.nothing),
		operation("GET", "/background-task/:task_id", s.getTask),
		operation("GET", "/health", s.nothing),
		operation("GET", "/health/ping", s.nothing),
	}, withoutEquivalent()...)
}

// withoutEquivalent are operations that libraries know and that Posthorn refuses.
func withoutEquivalent() []Operation {
	return []Operation{
		without("PATCH", endpointPath+"/transformation", "Posthorn has no transformations"),
		without("PUT", endpointPath+"/auto-config", "create the endpoint or the feed with Posthorn's API"),
		without("DELETE", messagePath+"/attempt/:attempt_id/content", "expunge the message: `DELETE /app/{app_id}/msg/{msg_id}/content`"),
		without("GET", "/background-task", "bulk jobs belong to a tenant: use `GET /bulk-jobs`"),
		without("POST", "/stats/usage/app", "use `GET /usage`"),
		without("PUT", "/stats/usage/event-types", "use `GET /analytics/deliveries`"),
		without("POST", "/auth/app/:"+handlers.TenantParam+"/expire-all", "use `DELETE /portal-links/{id}`"),
		without("POST", "/event-type/import/openapi", "use `POST /event-types/import`"),
		without("GET", appPath+"/integration", "Posthorn has no integrations"),
		without("POST", appPath+"/integration", "Posthorn has no integrations"),
		without("POST", appPath+"/msg/expunge-all-contents", "use `POST /expunges`"),
		without("POST", endpointPath+"/bulk-replay", "use `POST /replays`"),
		without("GET", "/operational-webhook/endpoint", "use notices"),
		without("POST", "/operational-webhook/endpoint", "use notices"),
		without("GET", "/stream", "Posthorn has no streams"),
		without("POST", "/stream", "Posthorn has no streams"),
		without("POST", "/environment/export", "use `posthorn export`"),
		without("POST", "/environment/import", "use `posthorn apply`"),
	}
}

// handler is the operation's handler with what all have in common.
func (o Operation) handler() handlers.Handler {
	h := o.Handler
	if h == nil {
		h = func(*handlers.Call) error { return o.unsupported() }
	}
	return func(c *handlers.Call) error {
		err := o.checkQuery(c)
		if err == nil {
			err = h(c)
		}
		if err != nil {
			return refuse(c, err)
		}
		return nil
	}
}

// unsupported refuses with a status below 500: the libraries repeat others.
func (o Operation) unsupported() error {
	return &refusal{
		status: http.StatusBadRequest,
		code:   "not_supported",
		detail: "Posthorn does not have this operation of Svix's API: " + strings.ReplaceAll(o.Instead, "`", "") + ".",
	}
}

// checkQuery rejects, by name, parameters that the operation does not know: a filter that is dropped silently lists
// what was not asked for.
func (o Operation) checkQuery(c *handlers.Call) error {
	if o.Handler == nil {
		return nil
	}
	var wrong []fault.Field
	for name := range c.Request.URL.Query() {
		if !slices.Contains(o.Query, name) {
			accepts := "no parameters"
			if len(o.Query) > 0 {
				accepts = strings.Join(o.Query, ", ")
			}
			wrong = append(wrong, fault.Field{Name: name, Detail: fmt.Sprintf("Unknown parameter %.64q. This operation accepts %s.", name, accepts)})
		}
	}
	if wrong == nil {
		return nil
	}
	slices.SortFunc(wrong, func(a, b fault.Field) int { return strings.Compare(a.Name, b.Name) })
	return &refusal{status: http.StatusBadRequest, in: "query", fields: wrong}
}
