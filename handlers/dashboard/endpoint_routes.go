package dashboard

import (
	"time"

	"posthorn/domain/access"
	"posthorn/handlers"
)

// endpointRoutes are the overview's live part and the pages of endpoints.
func (a *dashboard) endpointRoutes() []handlers.Route {
	return []handlers.Route{
		page("GET", "/live", access.Read, a.live),
		page("GET", "/endpoints", access.Read, a.listEndpoints),
		page("POST", "/endpoints", access.ChangeEndpoints, a.createEndpoint),
		page("GET", "/endpoints/new", access.ChangeEndpoints, a.newEndpoint),
		page("GET", "/endpoints/:endpoint_id", access.Read, a.showEndpoint),
		page("GET", "/endpoints/:endpoint_id/created", access.Read, a.showCreated),
		page("GET", "/endpoints/:endpoint_id/live", access.Read, a.liveEndpoint),
		page("GET", "/endpoints/:endpoint_id/failures", access.Read, a.showFailures),
		page("GET", "/endpoints/:endpoint_id/verification", access.Read, a.showVerification),
		page("POST", "/endpoints/:endpoint_id/verify", access.ChangeEndpoints, a.verifyEndpoint),
		page("POST", "/endpoints/:endpoint_id/pause", access.ChangeEndpoints, a.pauseEndpoint),
		page("POST", "/endpoints/:endpoint_id/resume", access.ChangeEndpoints, a.resumeEndpoint),
		slow(page("POST", "/endpoints/test-connection", access.ChangeEndpoints, a.testNewConnection)),
		slow(page("POST", "/endpoints/:endpoint_id/test-connection", access.ChangeEndpoints, a.testConnection)),
		page("POST", "/endpoints/:endpoint_id/certificate-request", access.ChangeEndpoints, a.requestCertificate),
		page("POST", "/endpoints/:endpoint_id/rewind", access.ChangeEndpoints, a.rewindEndpoint),
		page("POST", "/endpoints/:endpoint_id/mute", access.ChangeEndpoints, a.muteEndpoint),
		page("POST", "/endpoints/:endpoint_id/unmute", access.ChangeEndpoints, a.unmuteEndpoint),
		page("POST", "/endpoints/:endpoint_id/delete", access.ChangeEndpoints, a.deleteEndpoint),
		page("GET", "/endpoints/:endpoint_id/settings", access.Read, a.showEndpointSettings),
		page("POST", "/endpoints/:endpoint_id/settings", access.ChangeEndpoints, a.saveEndpointSettings),
		page("GET", "/endpoints/:endpoint_id/filter", access.Read, a.showFilter),
		page("POST", "/endpoints/:endpoint_id/filter", access.ChangeEndpoints, a.saveFilter),
		page("POST", "/endpoints/:endpoint_id/filter/try", access.Read, a.tryFilter),
		page("GET", "/endpoints/:endpoint_id/transformation", access.Read, a.showTransformation),
		large(page("POST", "/endpoints/:endpoint_id/transformation", access.ChangeEndpoints, a.saveTransformation)),
		large(page("POST", "/endpoints/:endpoint_id/transformation/try", access.Read, a.tryTransformation)),
		page("GET", "/endpoints/:endpoint_id/secrets", access.Read, a.showSecrets),
		// Portal links that show no secrets are admitted for the endpoints that they created (rotates).
		page("POST", "/endpoints/:endpoint_id/secrets", access.ChangeEndpoints, a.rotateSecret),
		page("POST", "/endpoints/:endpoint_id/switch-secret", access.ChangeEndpoints, a.switchSecret),
		page("POST", "/endpoints/:endpoint_id/signing-keys/rotate", access.RotateSecrets, a.rotateSigningKeys),
		page("POST", "/endpoints/:endpoint_id/secrets/:secret_id/check", access.ChangeEndpoints, a.checkSecret),
		page("POST", "/endpoints/:endpoint_id/secrets/:secret_id/end", access.ChangeEndpoints, a.endSecret),
		page("POST", "/endpoints/:endpoint_id/secrets/:secret_id/extend", access.ChangeEndpoints, a.extendSecret),
		page("GET", "/endpoints/:endpoint_id/test", access.ChangeEndpoints, a.showTest),
		large(page("POST", "/endpoints/:endpoint_id/test", access.ChangeEndpoints, a.sendTest)),
	}
}

// slow is a route that waits for a receiver: each of the three requests of a connection test has 10 s.
func slow(r handlers.Route) handlers.Route {
	r.Timeout = 40 * time.Second
	return r
}

// large is a route whose form can contain an event's data, which grows when it is encoded.
func large(r handlers.Route) handlers.Route {
	r.MaxBody = 4 << 20
	return r
}
