package svix

import "posthorn/handlers"

// operations is the table of docs/svix.md.
func (s *svix) operations() []Operation {
	return append([]Operation{
		{"GET", "/app", s.listApps},
		{"POST", "/app", s.createApp},
		{"GET", appPath, s.getApp},
		{"PUT", appPath, s.putApp},
		{"PATCH", appPath, s.patchApp},
		{"DELETE", appPath, s.deleteApp},

		{"GET", appPath + "/endpoint", s.listEndpoints},
		{"POST", appPath + "/endpoint", s.createEndpoint},
		{"GET", endpointPath, s.getEndpoint},
		{"PUT", endpointPath, s.putEndpoint},
		{"PATCH", endpointPath, s.patchEndpoint},
		{"DELETE", endpointPath, s.deleteEndpoint},
		{"GET", endpointPath + "/secret", s.getSecret},
		{"POST", endpointPath + "/secret/rotate", s.rotateSecret},
		{"GET", endpointPath + "/headers", s.getHeaders},
		{"PUT", endpointPath + "/headers", s.putHeaders},
		{"PATCH", endpointPath + "/headers", s.patchHeaders},
		{"GET", endpointPath + "/transformation", s.getTransformation},
		{"PATCH", endpointPath + "/transformation", nil},
		{"GET", endpointPath + "/stats", s.endpointStats},
		{"POST", endpointPath + "/recover", s.recoverEndpoint},
		{"POST", endpointPath + "/replay-missing", s.replayMissing},
		{"POST", endpointPath + "/send-example", s.sendExample},
		{"GET", endpointPath + "/msg", s.listEndpointMessages},

		{"GET", appPath + "/msg", s.listMessages},
		{"POST", appPath + "/msg", s.createMessage},
		{"GET", messagePath, s.getMessage},
		{"DELETE", messagePath + "/content", s.expungeMessage},
		{"GET", messagePath + "/endpoint", s.listDestinations},
		{"POST", messagePath + "/endpoint/:" + handlers.EndpointParam + "/resend", s.resend},
		{"GET", messagePath + "/attempt/:attempt_id", s.getAttempt},
		{"DELETE", messagePath + "/attempt/:attempt_id/content", nil},
		{"GET", appPath + "/attempt/endpoint/:" + handlers.EndpointParam, s.listAttemptsByEndpoint},
		{"GET", appPath + "/attempt/msg/:msg_id", s.listAttemptsByMessage},

		{"GET", "/event-type", s.listEventTypes},
		{"POST", "/event-type", s.createEventType},
		{"GET", "/event-type/:name", s.getEventType},
		{"PUT", "/event-type/:name", s.putEventType},
		{"PATCH", "/event-type/:name", s.patchEventType},
		{"DELETE", "/event-type/:name", s.deleteEventType},

		{"POST", "/auth/app-portal-access/:" + handlers.TenantParam, s.portalAccess},
		{"POST", "/auth/logout", s.nothing},
		{"GET", "/background-task/:task_id", s.getTask},
		{"GET", "/health", s.nothing},
		{"GET", "/health/ping", s.nothing},
	}, withoutEquivalent()...)
}

// withoutEquivalent are operations that libraries know and that get a 501 response.
func withoutEquivalent() []Operation {
	return []Operation{
		{Method: "GET", Path: "/background-task"},
		{Method: "POST", Path: "/stats/usage/app"},
		{Method: "PUT", Path: "/stats/usage/event-types"},
		{Method: "POST", Path: "/auth/app/:" + handlers.TenantParam + "/expire-all"},
		{Method: "POST", Path: "/event-type/import/openapi"},
		{Method: "GET", Path: appPath + "/integration"},
		{Method: "POST", Path: appPath + "/integration"},
		{Method: "POST", Path: appPath + "/msg/expunge-all-contents"},
		{Method: "POST", Path: endpointPath + "/bulk-replay"},
		{Method: "GET", Path: "/operational-webhook/endpoint"},
		{Method: "POST", Path: "/operational-webhook/endpoint"},
		{Method: "GET", Path: "/stream"},
		{Method: "POST", Path: "/stream"},
		{Method: "POST", Path: "/environment/export"},
		{Method: "POST", Path: "/environment/import"},
	}
}
