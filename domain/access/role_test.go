package access

import (
	"slices"
	"testing"

	"posthorn/domain/fault"
)

// TestTheTableOfActionsByRole is the table of actions by role, row by row. A role that a row does not name is refused.
func TestTheTableOfActionsByRole(t *testing.T) {
	t.Parallel()
	table := []struct {
		row     string
		actions []Action
		may     []Role
	}{
		{"read endpoints, deliveries, events, health, members", []Action{Read, ReadMembers}, []Role{Owner, Admin, Developer, Viewer}},
		{"read payloads and responses", []Action{ReadPayloads}, []Role{Owner, Admin, Developer}},
		{"read the catalog of event types", []Action{ReadEventTypes}, []Role{Owner, Admin, Developer, Viewer}},
		{"add, change, delete, import event types", []Action{ChangeEventTypes}, []Role{Owner, Admin, Developer}},
		{"create, change, pause, resume, verify, test endpoints", []Action{ChangeEndpoints}, []Role{Owner, Admin, Developer}},
		{"replay, retry, cancel, archive", []Action{ActOnDeliveries}, []Role{Owner, Admin, Developer}},
		{"see a new secret, rotate, API keys", []Action{RotateSecrets, ManageKeys}, []Role{Owner, Admin, Developer}},
		{"members, settings, retention, expunge", []Action{ManageMembers, ChangeSettings, Expunge}, []Role{Owner, Admin}},
		{"delete the tenant, transfer ownership, single sign-on", []Action{DeleteTenant, TransferOwnership, ManageSSO}, []Role{Owner}},
	}
	seen := map[Action]bool{}
	for _, c := range table {
		for _, a := range c.actions {
			seen[a] = true
			for _, r := range Roles() {
				if got, want := r.May(a), slices.Contains(c.may, r); got != want {
					t.Errorf("%s (%s): %s may: %v", c.row, a, r, got)
				}
			}
			for _, r := range []Role{"", "operator", "OWNER"} {
				if r.May(a) {
					t.Errorf("%s: the role %q may", a, r)
				}
			}
		}
	}
	if len(seen) != len(grants) {
		t.Errorf("the table here has %d actions, the code %d", len(seen), len(grants))
	}
	for _, r := range Roles() {
		if r.May("fly") || r.May("") {
			t.Errorf("%s may do what there is not", r)
		}
	}
}

func TestViewersReadPayloadsBySettingAlone(t *testing.T) {
	t.Parallel()
	for _, r := range Roles() {
		if got, want := r.MayReadPayloads(false), r != Viewer; got != want {
			t.Errorf("%s without the setting: %v", r, got)
		}
		if !r.MayReadPayloads(true) {
			t.Errorf("%s with the setting may not", r)
		}
	}
	if Role("").MayReadPayloads(true) {
		t.Error("nobody may")
	}
}

func TestOwnersAreMadeAndUnmadeByOwners(t *testing.T) {
	t.Parallel()
	for _, r := range append(Roles(), "") {
		for _, from := range append(Roles(), "") {
			for _, to := range append(Roles(), "") {
				want := r == Owner || r == Admin && from != Owner && to != Owner
				if got := r.MaySetRole(from, to); got != want {
					t.Errorf("%q makes a %q of a %q: %v", r, to, from, got)
				}
			}
		}
	}
}

func TestRolesAreReadByTheirNames(t *testing.T) {
	t.Parallel()
	for _, r := range Roles() {
		if got, err := ParseRole(string(r)); got != r || err != nil {
			t.Errorf("%s: got %q, %v", r, got, err)
		}
	}
	for _, name := range []string{"", "Owner", "root", "owner "} {
		if got, err := ParseRole(name); got != "" || !fault.Is(err, "role_unknown") {
			t.Errorf("%q: got %q, %v", name, got, err)
		}
	}
}

func TestAPortalLinkOpensNoMembersAndThePartsThatItNames(t *testing.T) {
	t.Parallel()
	closed := []Action{ReadMembers, ManageMembers, DeleteTenant, TransferOwnership, Expunge, ManageSSO}
	of := func(parts Parts) map[Action]bool { // what a part opens
		return map[Action]bool{
			RotateSecrets:    parts.Secrets,
			ActOnDeliveries:  parts.Replay,
			ReadEventTypes:   parts.EventTypes,
			ChangeEventTypes: parts.EventTypes,
			ReadPayloads:     parts.Payloads,
			ManageKeys:       parts.Secrets && parts.Replay && parts.EventTypes && parts.Payloads,
		}
	}
	for bits := range 16 {
		parts := Parts{Secrets: bits&1 > 0, Replay: bits&2 > 0, EventTypes: bits&4 > 0, Payloads: bits&8 > 0}
		for _, r := range append(Roles(), "") {
			for a := range grants {
				open, named := of(parts)[a]
				want := r.May(a) && !slices.Contains(closed, a) && (open || !named)
				if got := r.MayByPortal(a, parts); got != want {
					t.Errorf("%q, %s, %+v: %t", r, a, parts, got)
				}
			}
		}
	}
}

func TestNobodyRisesByAKey(t *testing.T) {
	t.Parallel()
	for _, s := range TenantScopes() {
		for _, r := range append(Roles(), "") {
			want := slices.Contains([]Role{Owner, Admin}, r) || r == Developer && s != MembersWrite
			if got := r.May(GrantNeeds(s)); got != want {
				t.Errorf("%q grants %s: %t", r, s, got)
			}
			if r.MayByPortal(GrantNeeds(s), Parts{Secrets: true, Replay: true, EventTypes: true, Payloads: true}) && s == MembersWrite {
				t.Errorf("a portal link as %q grants %s", r, s)
			}
		}
	}
}

func TestATenantKeepsAnOwner(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		owners   int
		from, to Role
		ok       bool
	}{
		{1, Owner, Admin, false},
		{1, Owner, "", false},
		{1, Owner, Owner, true},
		{2, Owner, "", true},
		{2, Owner, Viewer, true},
		{1, Admin, "", true},
		{1, Viewer, Owner, true},
		{0, Owner, "", false},
	} {
		if got := KeepsAnOwner(c.owners, c.from, c.to); got != c.ok {
			t.Errorf("%+v: %t", c, got)
		}
	}
}
