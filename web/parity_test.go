package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"posthorn/handlers/admin"
	"posthorn/handlers/api"
	"posthorn/handlers/dashboard"
	"posthorn/handlers/readers"
)

// twins are, for each thing that a person can do in a tenant's dashboard, the operation by which a program does it;
// or, after a hyphen, why there is none.
var twins = map[string]string{
	"/deliveries/:delivery_id/archive":                   "POST /deliveries/:delivery_id/archive",
	"/deliveries/:delivery_id/cancel":                    "POST /deliveries/:delivery_id/cancel",
	"/deliveries/:delivery_id/replay":                    "POST /deliveries/:delivery_id/replay",
	"/deliveries/:delivery_id/retry-now":                 "POST /deliveries/:delivery_id/retry-now",
	"/deliveries/:delivery_id/unarchive":                 "POST /deliveries/:delivery_id/unarchive",
	"/deliveries/bulk":                                   "POST /deliveries/bulk",
	"/bulk-jobs":                                         "POST /replays",
	"/bulk-jobs/:job_id/continue":                        "POST /bulk-jobs/:job_id/continue",
	"/bulk-jobs/:job_id/dismiss":                         "- hides a line of the page",
	"/deliveries/:delivery_id/share":                     "POST /deliveries/:delivery_id/shares",
	"/deliveries/:delivery_id/shares/:share_id/revoke":   "DELETE /deliveries/:delivery_id/shares/:share_id",
	"/bulk-jobs/:job_id/cancel":                          "POST /bulk-jobs/:job_id/cancel",
	"/endpoints":                                         "POST /endpoints",
	"/endpoints/:endpoint_id/consumers":                  "POST /feeds/:endpoint_id/consumers",
	"/endpoints/:endpoint_id/consumers/:consumer/delete": "DELETE /feeds/:endpoint_id/consumers/:consumer",
	"/endpoints/:endpoint_id/consumers/:consumer/rewind": "POST /feeds/:endpoint_id/rewind",
	"/endpoints/:endpoint_id/consumers/:consumer/rotate": "POST /feeds/:endpoint_id/consumers/:consumer/rotate-token",
	"/endpoints/:endpoint_id/delete":                     "DELETE /endpoints/:endpoint_id",
	"/endpoints/:endpoint_id/filter":                     "PATCH /endpoints/:endpoint_id",
	"/endpoints/:endpoint_id/filter/try":                 "POST /endpoints/:endpoint_id/filter/dry-run",
	"/endpoints/:endpoint_id/transformation":             "PATCH /endpoints/:endpoint_id",
	"/endpoints/:endpoint_id/transformation/try":         "POST /endpoints/:endpoint_id/transformation/try",
	"/endpoints/:endpoint_id/inbox/answer":               "PATCH /endpoints/:endpoint_id/inbox",
	"/endpoints/:endpoint_id/inbox/clear":                "DELETE /endpoints/:endpoint_id/inbox/requests",
	"/endpoints/test-connection":                         "POST /endpoints/test-connection",
	"/endpoints/:endpoint_id/test-connection":            "POST /endpoints/:endpoint_id/test-connection",
	"/endpoints/:endpoint_id/certificate-request":        "POST /endpoints/:endpoint_id/certificate-request",
	"/endpoints/:endpoint_id/rewind":                     "POST /endpoints/:endpoint_id/rewind",
	"/endpoints/:endpoint_id/mute":                       "POST /endpoints/:endpoint_id/mute",
	"/endpoints/:endpoint_id/unmute":                     "POST /endpoints/:endpoint_id/unmute",
	"/endpoints/:endpoint_id/secrets/:secret_id/check":   "POST /endpoints/:endpoint_id/secrets/:secret_id/check",
	"/endpoints/:endpoint_id/secrets/:secret_id/end":     "POST /endpoints/:endpoint_id/secrets/:secret_id/end",
	"/endpoints/:endpoint_id/secrets/:secret_id/extend":  "POST /endpoints/:endpoint_id/secrets/:secret_id/extend",
	"/endpoints/:endpoint_id/pause":                      "POST /endpoints/:endpoint_id/pause",
	"/endpoints/:endpoint_id/resume":                     "POST /endpoints/:endpoint_id/resume",
	"/endpoints/:endpoint_id/secrets":                    "POST /endpoints/:endpoint_id/rotate-secret",
	"/endpoints/:endpoint_id/signing-keys/rotate":        "POST /signing-keys/rotate",
	"/endpoints/:endpoint_id/settings":                   "PATCH /endpoints/:endpoint_id",
	"/endpoints/:endpoint_id/switch-secret":              "POST /endpoints/:endpoint_id/switch-secret",
	"/endpoints/:endpoint_id/test":                       "POST /endpoints/:endpoint_id/test",
	"/endpoints/:endpoint_id/verify":                     "POST /endpoints/:endpoint_id/verify",
	"/events":                                            "POST /events",
	"/events/:event_id/expunge":                          "POST /events/:event_id/expunge",
	"/events/:event_id/replay":                           "POST /events/:event_id/replay",
	"/event-types":                                       "POST /event-types",
	"/event-types/:name":                                 "PATCH /event-types/:name",
	"/event-types/:name/delete":                          "DELETE /event-types/:name",
	"/history/:day/restore":                              "POST /history/:day/restore",
	"/inboxes":                                           "POST /inboxes",
	"/invitations/:invitation_id/revoke":                 "DELETE /invitations/:invitation_id",
	"/keys":                                              "POST /keys",
	"/keys/:key_id/revoke":                               "DELETE /keys/:key_id",
	"/members/:member_id/remove":                         "DELETE /members/:member_id",
	"/members/:member_id/role":                           "PATCH /members/:member_id",
	"/members/invite":                                    "POST /invitations",
	"/settings":                                          "PATCH /tenant",
	"/subscriptions/:subscription_id/revoke":             "DELETE /subscriptions/:subscription_id",
	"/subscriptions/access":                              "PATCH /tenants/:tenant_id/mcp-access",
	"/sources":                                           "POST /sources",
	"/sources/:source_id/settings":                       "PATCH /sources/:source_id",
	"/sources/:source_id/mapping/try":                    "POST /sources/:source_id/test",
	"/sources/:source_id/pause":                          "POST /sources/:source_id/pause",
	"/sources/:source_id/resume":                         "POST /sources/:source_id/resume",
	"/sources/:source_id/delete":                         "DELETE /sources/:source_id",
	"/sources/:source_id/rejected/:rejected_id/retry":    "POST /outbox/rejected/:rejected_id/retry",
	"/sources/:source_id/rejected/:rejected_id/discard":  "DELETE /outbox/rejected/:rejected_id",
	"/settings/delete":                                   "DELETE /tenants/:tenant_id",
	"/settings/export":                                   "POST /tenants/:tenant_id/export",
	"/settings/notices":                                  "PATCH /tenant",
	"/settings/sso":                                      "PATCH /tenants/:tenant_id/sso",
	"/settings/sso/remove":                               "DELETE /tenants/:tenant_id/sso",
	"/settings/sso/domains":                              "PATCH /tenants/:tenant_id/sso",
	"/settings/sso/domains/verify":                       "- an owner says that the record is in the DNS, and reads what is missing",
	"/settings/sso/domains/remove":                       "PATCH /tenants/:tenant_id/sso",
	"/settings/transfer":                                 "- a person gives away what is theirs, and proves first who they are",
	"/leave":                                             "- a person leaves; a program removes them",
	"/alerts/mute":                                       "PATCH /tenant",
	"/notices/read":                                      "- what a person has read",
	"/notices/preferences":                               "- what comes to a person by mail",
	"/portal":                                            "POST /portal-links",
	"/portal/:portal_link_id/revoke":                     "DELETE /portal-links/:portal_link_id",
	"/signature":                                         "- nothing is changed or kept: the SDK verifies where the program runs",
}

// consoleTwins are the same for what an operator can do in the console, by which a platform key does it.
var consoleTwins = map[string]string{
	"/account/passkeys":                    "- an operator's own device signs the operator in",
	"/account/passkeys/options":            "- as above",
	"/account/passkeys/rename":             "- as above",
	"/account/passkeys/remove":             "- as above",
	"/alerts/channels":                     "POST /endpoints",
	"/alerts/channels/:endpoint_id/delete": "DELETE /endpoints/:endpoint_id",
	"/alerts/mute":                         "PATCH /platform",
	"/books/:id/accept":                    "- a person has looked for what is missing, and answers for it",
	"/egress":                              "PUT /platform/egress-proxies/:owner",
	"/egress/remove":                       "DELETE /platform/egress-proxies/:owner",
	"/keys":                                "- a key that made keys for every tenant would be worth as much as an operator",
	"/keys/:key_id/revoke":                 "- as above",
	"/mail/:mail_id/again":                 "- the platform's own mail is looked after by people",
	"/pauses":                              "POST /platform/pauses",
	"/pauses/:pause_id/resume":             "POST /platform/pauses/:pause_id/resume",
	"/settings":                            "PATCH /platform",
	"/tenants":                             "POST /tenants",
	"/tenants/:id/delete":                  "DELETE /tenants/:tenant_id",
	"/tenants/:id/export":                  "POST /tenants/:tenant_id/export",
	"/tenants/:id/limits":                  "PATCH /tenants/:tenant_id/limits",
	"/tenants/:id/resume":                  "POST /tenants/:tenant_id/resume",
	"/tenants/:id/suspend":                 "POST /tenants/:tenant_id/suspend",
	"/tenants/:id/view-as":                 "- a program needs no pages: it reads what its key allows",
	"/view-as/act":                         "- as above",
	"/view-as/end":                         "- as above",
}

// TestWhatAPersonCanDoAProgramCan holds the dashboard to the API: an action without a twin has to say why.
func TestWhatAPersonCanDoAProgramCan(t *testing.T) {
	t.Parallel()
	served := map[string]bool{}
	for _, r := range api.Routes(api.Deps{}, readers.Routes) {
		served[r.Method+" "+strings.TrimPrefix(r.Path, "/api/v1")] = true
	}
	actions := 0
	for _, r := range dashboard.Routes(dashboard.Deps{}) {
		path := strings.TrimPrefix(r.Path, dashboard.Root)
		if r.Method != http.MethodPost {
			continue
		}
		actions++
		twin, ok := twins[path]
		if !ok {
			t.Errorf("POST %s of the dashboard has no twin in the API, and no reason for that", path)
		} else if !strings.HasPrefix(twin, "- ") && !served[twin] {
			t.Errorf("POST %s of the dashboard: the API has no %s", path, twin)
		}
	}
	if actions < 30 {
		t.Errorf("%d actions: were they read?", actions)
	}
	for _, r := range admin.Routes(admin.Deps{Now: time.Now}) {
		if r.Method != http.MethodPost || r.Access.Public {
			continue
		}
		path := strings.TrimPrefix(r.Path, admin.Root)
		twin, ok := consoleTwins[path]
		if !ok {
			t.Errorf("POST %s of the console has no twin in the API, and no reason for that", path)
		} else if !strings.HasPrefix(twin, "- ") && !served[twin] {
			t.Errorf("POST %s of the console: the API has no %s", path, twin)
		}
	}
}
