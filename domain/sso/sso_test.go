package sso_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"posthorn/domain/access"
	"posthorn/domain/fault"
	"posthorn/domain/sso"
)

func yes() *bool { v := true; return &v }
func no() *bool  { v := false; return &v }

func TestOnlyTheTenantsOwnPeopleAreSignedIn(t *testing.T) {
	t.Parallel()
	mapped := sso.Config{Join: true, Default: "viewer", RoleClaim: "groups", Roles: sso.Mapping{"eng": "developer", "ops": "admin"}}
	plain := sso.Config{Join: true, Default: "viewer"}
	strict := sso.Config{Join: true, RoleClaim: "groups", Roles: sso.Mapping{"eng": "developer"}}
	ada := sso.Claims{Subject: "ada", Email: "ada@example.com", EmailVerified: yes(), Values: []string{"eng", "other", "ops"}}
	nobody := sso.Claims{Subject: "ada", Email: "ada@example.com", EmailVerified: yes()}
	for name, c := range map[string]struct {
		config sso.Config
		claims sso.Claims
		facts  sso.Facts
		want   sso.Decision
		err    error
	}{
		"a new person of a verified domain joins with the highest mapped role": {mapped, ada, sso.Facts{EmailKnown: true, ByDomain: true}, sso.Decision{Join: true, Role: "admin", Link: true}, nil},
		"a new person without a mapped value gets the default": {mapped, nobody, sso.Facts{EmailKnown: true, ByDomain: true}, sso.Decision{
			Join: true,
			Role: "viewer",
			Link: true,
		}, nil},
		"without a default they are rejected": {
			strict, nobody,
			sso.Facts{EmailKnown: true, ByDomain: true},
			sso.Decision{},
			sso.ErrNoRole,
		},
		"an address of a domain that is not verified joins nothing": {mapped, ada, sso.Facts{EmailKnown: true}, sso.Decision{}, sso.ErrNotMember},
		"nor does an invitation to it": {
			mapped, ada,
			sso.Facts{EmailKnown: true, Invited: "admin"},
			sso.Decision{},
			sso.ErrNotMember,
		},
		"an invitation within the domain counts": {
			mapped, nobody,
			sso.Facts{EmailKnown: true, ByDomain: true, Invited: "developer"},
			sso.Decision{Join: true, Role: "developer", Link: true},
			nil,
		},
		"nobody joins where joining is off": {
			sso.Config{Default: "viewer"},
			ada,
			sso.Facts{EmailKnown: true, ByDomain: true},
			sso.Decision{},
			sso.ErrNotMember,
		},
		"a member is linked at the first sign-in": {
			plain, ada,
			sso.Facts{EmailKnown: true, Role: "admin"},
			sso.Decision{Role: "admin", Link: true},
			nil,
		},
		"a member's role follows the provider":           {mapped, ada, sso.Facts{Linked: true, Role: "viewer"}, sso.Decision{Role: "admin"}, nil},
		"a member without a role any longer is rejected": {strict, nobody, sso.Facts{Linked: true, Role: "viewer"}, sso.Decision{}, sso.ErrNoRole},
		"an owner stays one": {
			mapped, nobody,
			sso.Facts{Linked: true, Role: "owner"},
			sso.Decision{Role: "owner"},
			nil,
		},
		"a removed member does not come back": {
			mapped, ada,
			sso.Facts{Linked: true, EmailKnown: true, ByDomain: true},
			sso.Decision{},
			sso.ErrRemoved,
		},
		"except by an invitation": {mapped, ada, sso.Facts{
			Linked:     true,
			EmailKnown: true,
			Invited:    "viewer",
		}, sso.Decision{Join: true, Role: "viewer", Link: true}, nil},
		"an invitation of a verified domain links a removed member again": {
			mapped, ada,
			sso.Facts{EmailKnown: true, ByDomain: true, Otherwise: true, Invited: "viewer"},
			sso.Decision{Join: true, Role: "viewer", Link: true},
			nil,
		},
		"a removed member does not come back with another account": {
			mapped, ada,
			sso.Facts{EmailKnown: true, ByDomain: true, Otherwise: true},
			sso.Decision{},
			sso.ErrRemoved,
		},
		"groups that were not told keep the role": {
			strict,
			sso.Claims{Subject: "s", Gap: sso.Overage},
			sso.Facts{Linked: true, Role: "viewer"},
			sso.Decision{Role: "viewer", Kept: sso.Overage},
			nil,
		},
		"an invitation has the role that groups don't tell": {
			mapped,
			sso.Claims{Subject: "s", Gap: sso.Absent},
			sso.Facts{EmailKnown: true, ByDomain: true, Invited: "developer"},
			sso.Decision{Join: true, Role: "developer", Link: true},
			nil,
		},
		"an address that is not verified finds nobody": {plain, ada, sso.Facts{Role: "owner"}, sso.Decision{}, sso.ErrEmail},
		"the address of another account's member": {
			plain, ada,
			sso.Facts{EmailKnown: true, Role: "owner", Otherwise: true},
			sso.Decision{},
			sso.ErrOtherAccount,
		},
		"a disabled person": {plain, ada, sso.Facts{
			Linked:   true,
			Role:     "owner",
			Disabled: true,
		}, sso.Decision{}, sso.ErrDisabled},
		"no subject": {
			plain,
			sso.Claims{Email: "ada@example.com"},
			sso.Facts{EmailKnown: true, Role: "owner"},
			sso.Decision{},
			sso.ErrEmail,
		},
	} {
		got, err := c.config.Decide(c.claims, c.facts)
		if !errors.Is(err, c.err) || c.err == nil && err != nil || err == nil && got != c.want {
			t.Errorf("%s: decided %+v, %v; want %+v, %v", name, got, err, c.want, c.err)
		}
	}
}

func TestGroupsAreReadInEveryFormThatProvidersSend(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		claims, claim string
		want          []string
		gap           sso.Gap
	}{
		"a list":                             {`{"groups":["a","b"]}`, "groups", []string{"a", "b"}, ""},
		"a text":                             {`{"groups":"a"}`, "groups", []string{"a"}, ""},
		"an object's names":                  {`{"roles":{"a":{"org":"x"},"b":true,"c":false,"d":null,"e":{}}}`, "roles", []string{"a", "b"}, ""},
		"a list of objects":                  {`{"groups":[{"id":"1","name":"a"},{"value":"2","display":"b"},{"id":"3"}]}`, "groups", []string{"a", "b", "3"}, ""},
		"a path":                             {`{"realm_access":{"roles":["a"]}}`, "realm_access.roles", []string{"a"}, ""},
		"a path through a list":              {`{"groups":[{"id":"1","name":"a"},{"id":"2"}]}`, "groups.id", []string{"1", "2"}, ""},
		"a path through lists":               {`{"apps":[{"roles":["a"]},{"roles":["b","c"]},{}]}`, "apps.roles", []string{"a", "b", "c"}, ""},
		"a name with dots":                   {`{"https://a.example/roles":["a"]}`, "https://a.example/roles", []string{"a"}, ""},
		"an empty list":                      {`{"groups":[]}`, "groups", nil, ""},
		"a path into an empty list":          {`{"groups":[]}`, "groups.name", nil, ""},
		"an empty text":                      {`{"groups":""}`, "groups", nil, ""},
		"nothing is said":                    {`{}`, "groups", nil, sso.Absent},
		"null":                               {`{"groups":null}`, "groups", nil, sso.Absent},
		"a path that ends before":            {`{"realm_access":{}}`, "realm_access.roles", nil, sso.Absent},
		"Entra's token of too many":          {`{"_claim_names":{"groups":"src1"},"_claim_sources":{"src1":{}}}`, "groups", nil, sso.Overage},
		"Entra's implicit token":             {`{"hasgroups":true}`, "groups", nil, sso.Overage},
		"another claim is elsewhere":         {`{"_claim_names":{"address":"src1"}}`, "groups", nil, sso.Absent},
		"groups although there are too many": {`{"hasgroups":true,"groups":["a"]}`, "groups", []string{"a"}, ""},
		"a truth value":                      {`{"groups":true}`, "groups", nil, sso.Unreadable},
		"numbers":                            {`{"groups":[1,2]}`, "groups", nil, sso.Unreadable},
		"texts among others":                 {`{"groups":[1,"a",null,""]}`, "groups", []string{"a"}, ""},
	} {
		var claims map[string]any
		if err := json.Unmarshal([]byte(c.claims), &claims); err != nil {
			t.Fatal(err)
		}
		got, gap := sso.Groups(claims, c.claim)
		if !slices.Equal(got, c.want) || gap != c.gap {
			t.Errorf("%s: %q, gap %q; want %q, gap %q", name, got, gap, c.want, c.gap)
		}
	}
	for _, gap := range []sso.Gap{sso.Absent, sso.Overage, sso.Unreadable} {
		if e := fault.As(gap.Refusal()); gap.Sentence() == "" || e == nil || e.Detail != gap.Sentence() {
			t.Errorf("%s has no sentence", gap)
		}
	}
}

func TestAnAddressCountsOnlyWhereTheProviderVouchesForIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		verified *bool
		trust    bool
		email    string
		want     string
	}{
		{yes(), false, "Ada@Example.com", "ada@example.com"},
		{no(), false, "ada@example.com", ""},
		{no(), true, "ada@example.com", ""},
		{nil, false, "ada@example.com", ""},
		{nil, true, "ada@example.com", "ada@example.com"},
		{yes(), true, "Ada <ada@example.com>", ""},
		{yes(), true, "", ""},
	} {
		if got := (sso.Config{TrustEmail: c.trust}).VerifiedEmail(sso.Claims{
			Email:         c.email,
			EmailVerified: c.verified,
		}); got != c.want {
			t.Errorf("the address of %+v is %q", c, got)
		}
	}
}

func TestAMappingNeverMakesAnOwner(t *testing.T) {
	t.Parallel()
	m, err := sso.ParseMapping("eng = developer\r\n\n cn=ops,dc=example = Admin\n")
	if err != nil || len(m) != 2 || m["eng"] != access.Developer || m["cn=ops,dc=example"] != access.Admin {
		t.Fatalf("%v %v", m, err)
	}
	if again, err := sso.ParseMapping(m.Text()); err != nil || len(again) != 2 {
		t.Errorf("its own text is read as %v, %v", again, err)
	}
	for _, wrong := range []string{"boss = owner", "eng", "= admin", "eng = chief", "a = admin\na = viewer", "x\x00y = admin"} {
		if _, err := sso.ParseMapping(wrong); fault.As(err) == nil {
			t.Errorf("%q was accepted: %v", wrong, err)
		}
	}
}

func TestDomains(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{" @Example.COM ": "example.com", "a.example.com": "a.example.com", "example": "", "a@b.com": "", "": "", "1.2.3.4": "", "exa mple.com": ""} {
		if got, err := sso.Domain(text); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is read as %q, %v", text, got, err)
		}
	}
	if !sso.HasRecord([]string{"v=spf1", " posthorn-domain=abc "}, "abc") || sso.HasRecord([]string{"posthorn-domain=abcd", "abc"}, "abc") {
		t.Error("the record of a domain is not told from others")
	}
}

func TestTheProviderMakesASessionShorter(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	for _, c := range []struct {
		ends time.Time
		want time.Duration
	}{
		{time.Time{}, 12 * time.Hour},
		{now.Add(time.Hour), time.Hour},
		{now.Add(99 * time.Hour), 12 * time.Hour},
		{now.Add(-time.Second), -time.Second},
	} {
		if got := sso.SessionLife(12*time.Hour, sso.Claims{Ends: c.ends}, now); got != c.want {
			t.Errorf("a provider's session that ends at %v gives %v, want %v", c.ends, got, c.want)
		}
	}
	for _, c := range []struct {
		at   time.Time
		want time.Duration
	}{{time.Time{}, 10 * time.Minute}, {now.Add(-time.Minute), time.Minute}, {now.Add(time.Hour), 0}} {
		if got := sso.Stale(sso.Claims{SignedIn: c.at}, now); got != c.want {
			t.Errorf("a sign-in at %v is %v old, want %v", c.at, got, c.want)
		}
	}
}

func TestAConnectionIsChecked(t *testing.T) {
	t.Parallel()
	good := sso.Config{ClientID: "posthorn", Default: "viewer", Join: true, Session: sso.Default().Session}
	if err := good.Check("secret"); err != nil {
		t.Fatal(err)
	}
	for field, c := range map[string]struct {
		config sso.Config
		secret string
	}{
		"client_id":     {sso.Config{Session: sso.Default().Session}, ""},
		"client_secret": {sso.Config{ClientID: "a", Session: sso.Default().Session}, "two\nlines"},
		"role_claim":    {sso.Config{ClientID: "a", Session: sso.Default().Session, Roles: sso.Mapping{"a": "admin"}}, ""},
		"default_role":  {sso.Config{ClientID: "a", Session: sso.Default().Session, Join: true}, ""},
		"session_hours": {sso.Config{ClientID: "a"}, ""},
	} {
		e := fault.As(c.config.Check(c.secret))
		if e == nil || len(e.Fields) != 1 || e.Fields[0].Name != field {
			t.Errorf("%s: %+v", field, e)
		}
	}
}
