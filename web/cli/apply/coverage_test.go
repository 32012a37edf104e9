package apply

import (
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"posthorn/web/cli/desired"
)

// managed are the operations of the API that change what a file can have, and the kind of it.
var managed = map[string]desired.Kind{
	"updatePlatform":     desired.Platform,
	"createTenant":       desired.Tenant,
	"putTenant":          desired.Tenant,
	"updateTenant":       desired.Tenant,
	"updateOwnTenant":    desired.Tenant,
	"deleteTenant":       desired.Tenant,
	"updateTenantLimits": desired.Tenant,
	"suspendTenant":      desired.Tenant,
	"resumeTenant":       desired.Tenant,
	"createEventType":    desired.EventType,
	"updateEventType":    desired.EventType,
	"deleteEventType":    desired.EventType,
	"importEventTypes":   desired.EventType,
	"importAll":          desired.Endpoint,
	"createEndpoint":     desired.Endpoint,
	"updateEndpoint":     desired.Endpoint,
	"deleteEndpoint":     desired.Endpoint,
	"rotateSecret":       desired.Endpoint,
	"pauseEndpoint":      desired.Endpoint,
	"resumeEndpoint":     desired.Endpoint,
	"createInbox":        desired.Endpoint,
	"updateInbox":        desired.Endpoint,
	"createSource":       desired.Source,
	"updateSource":       desired.Source,
	"deleteSource":       desired.Source,
	"pauseSource":        desired.Source,
	"resumeSource":       desired.Source,
	"createInvitation":   desired.Member,
	"revokeInvitation":   desired.Member,
	"updateMember":       desired.Member,
	"removeMember":       desired.Member,
	"createKey":          desired.Key,
	"revokeKey":          desired.Key,
	"updateTenantSSO":    desired.SSO,
	"removeTenantSSO":    desired.SSO,
	"updateMCPAccess":    desired.Tenant,
}

// unmanaged are the operations that change nothing which a file could have, each with the reason.
var unmanaged = map[string]string{
	"emitEvent":            "data",
	"emitEvents":           "data",
	"replayEvent":          "data",
	"expungeEvent":         "data",
	"createExpunge":        "data",
	"retryRejectedEvent":   "data",
	"discardRejectedEvent": "data",
	"retryDelivery":        "data",
	"cancelDelivery":       "data",
	"replayDelivery":       "data",
	"archiveDelivery":      "data",
	"checkSecret":          "an action",
	"endSecret":            "an action",
	"extendSecret":         "an action",
	"rotateSigningKeys":    "an action",
	"muteEndpoint":         "an action",
	"rewindEndpoint":       "an action",
	"requestCertificate":   "an action",
	"testConnection":       "an action",
	"testSource":           "an action",
	"tryTransformation":    "an action",
	"testNewConnection":    "an action",
	"unmuteEndpoint":       "an action",
	"unarchiveDelivery":    "data",
	"actOnDeliveries":      "data",
	"createReplays":        "data",
	"recoverEndpoint":      "data",
	"replayMissing":        "data",
	"cancelBulkJob":        "data",
	"continueBulkJob":      "data",
	"createDeliveryShare":  "ends within a week",
	"revokeDeliveryShare":  "ends within a week",
	"exportTenant":         "a file of data",
	"emptyInbox":           "data",
	"restoreHistory":       "data",
	"revokeSubscription":   "a client subscribes, and ends by itself",
	"createFeedConsumer":   "its token is shown once, to its program",
	"rotateFeedToken":      "its token is shown once, to its program",
	"deleteFeedConsumer":   "follows its program",
	"acknowledgeFeed":      "a reader's place",
	"rewindFeed":           "a reader's place",
	"createListener":       "ends with its program",
	"answerDelivery":       "a response of a listener",
	"createPortalLink":     "ends within hours",
	"revokePortalLink":     "ends within hours",
	"setEgressProxy":       "belongs to the network of one server, as its environment does",
	"removeEgressProxy":    "belongs to the network of one server, as its environment does",
	"pauseDispatch":        "the response to an incident",
	"resumeDispatch":       "the response to an incident",
	"verifyEndpoint":       "changes nothing that stays",
	"testEndpoint":         "changes nothing that stays",
	"dryRunFilter":         "changes nothing",
	"switchSecret":         "ends the overlap of a rotation, which ends by itself",
}

// parts are the bodies of the API with fields that a file has: which fields are read, and which an export writes.
var parts = []struct {
	schema            string
	read, written     []string
	unread, unwritten map[string]string // with the reason
}{
	{"PlatformPatch", platformFields, []string{"settings"}, map[string]string{
		"health_policy":   "settings has it",
		"overdue_minutes": "settings has it",
	}, map[string]string{"health_policy": "settings has it", "overdue_minutes": "settings has it"}},
	{"TenantPatch", tenantFields, shownTenant, nil, nil},
	{"TenantLimitsPatch", fieldsIn("TenantLimitsPatch"), fieldsIn("OwnLimits"), nil, nil},
	{"MCPAccessPatch", fieldsIn("MCPAccessPatch"), slices.DeleteFunc(fieldsIn("MCPAccess"), func(name string) bool { return name == "resource" }), nil, nil},
	{"EventTypeInput", eventTypeFields, fieldsIn("EventType"), nil, nil},
	{"EndpointInput", endpointFields, append([]string{"assume_verified", "paused", "secret"}, shownEndpoint...), nil, map[string]string{
		"preset":            "the fields that it sets are written",
		"secret_type":       "the secret says it",
		"start":             "counts when an endpoint is created",
		"send_verification": "counts when an endpoint is created",
	}},
	{"EndpointPatch", endpointFields, append([]string{"assume_verified", "paused", "secret"}, shownEndpoint...), nil, map[string]string{
		"preset": "the fields that it sets are written",
	}},
	{"SourceInput", sourceFields, append([]string{"kind", "mapping", "name", "paused", "start"}, connections...), nil, nil},
	{"SourcePatch", sourceFields, append([]string{"mapping", "name", "paused", "start"}, connections...), nil, nil},
	{"InboxPatch", endpointFields, []string{"answer"}, nil, nil},
	{"InvitationInput", memberFields, memberFields, nil, nil},
	{"MemberPatch", memberFields, memberFields, nil, nil},
	{"KeyInput", keyFields, []string{"name", "scopes", "expires_at"}, nil, nil},
	{"SSOPatch", ssoFields, append([]string{"client_secret"}, fieldsIn("SSO")...), nil, nil},
}

type apiContract struct {
	Paths      map[string]map[string]yaml.Node `yaml:"paths"`
	Components struct {
		Schemas map[string]struct {
			Properties map[string]yaml.Node `yaml:"properties"`
		} `yaml:"schemas"`
	} `yaml:"components"`
}

// contract is the API's contract.
var contract = func() (c apiContract) {
	text, err := os.ReadFile("../../../handlers/api/openapi.yaml")
	if err == nil {
		err = yaml.Unmarshal(text, &c)
	}
	if err != nil {
		panic(err)
	}
	return c
}()

func fieldsIn(schema string) (names []string) {
	for name := range contract.Components.Schemas[schema].Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Every field that the API can change is in the file, or the list above has the reason.
func TestEveryChangeThatTheAPIHasIsInTheFile(t *testing.T) {
	t.Parallel()
	there := map[string]bool{}
	for path, methods := range contract.Paths {
		for method, node := range methods {
			if !slices.Contains([]string{"post", "put", "patch", "delete"}, method) {
				continue
			}
			var operation struct {
				ID string `yaml:"operationId"`
			}
			if err := node.Decode(&operation); err != nil || operation.ID == "" {
				t.Fatalf("%s %s: %v", method, path, err)
			}
			there[operation.ID] = true
			_, in := managed[operation.ID]
			if reason := unmanaged[operation.ID]; in == (reason != "") {
				t.Errorf("%s %s (%s): build it into domain/desired and web/cli/apply, or write here and in docs/declarative.md why the file doesn't have it",
					strings.ToUpper(method), path, operation.ID)
			}
		}
	}
	for id := range managed {
		if !there[id] {
			t.Errorf("the API has no operation %s", id)
		}
	}
	for id := range unmanaged {
		if !there[id] {
			t.Errorf("the API has no operation %s", id)
		}
	}
	if len(there) < 50 {
		t.Errorf("%d operations: were they read?", len(there))
	}
}

// Each field of what the API changes is read from the file, and written by an export.
func TestEveryFieldThatTheAPIChangesIsInTheFile(t *testing.T) {
	t.Parallel()
	for _, p := range parts {
		fields := fieldsIn(p.schema)
		if len(fields) == 0 {
			t.Errorf("the API has no schema %s", p.schema)
		}
		for _, field := range fields {
			if !slices.Contains(p.read, field) && p.unread[field] == "" {
				t.Errorf("%s.%s can't be in a file", p.schema, field)
			}
			if !slices.Contains(p.written, field) && p.unwritten[field] == "" {
				t.Errorf("%s.%s is not exported", p.schema, field)
			}
		}
	}
}
