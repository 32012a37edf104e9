package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"posthorn/client"
)

// platform is a client with the desk's key.
func (d *desk) platform(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New(d.url, strings.TrimPrefix(d.environ[1], "POSTHORN_API_KEY="))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ofSenders are a tenant and its two endpoints of each of the senders.
var ofSenders = map[string]struct {
	tenant    string
	endpoints [2]string
}{
	"svix":    {"customer-0", [2]string{"ep_0_0", "ep_0_1"}},
	"outpost": {"tenant_0", [2]string{"des_0_0", "des_0_1"}},
	"convoy":  {"owner_0", [2]string{"end_0_0", "end_0_1"}},
}

// TestAnImportFollowsWhatChangedThere rotates the secrets there, and takes away headers, metadata and rates. A further
// run changes nothing, and a dry run nothing at all.
func TestAnImportFollowsWhatChangedThere(t *testing.T) {
	t.Parallel()
	for name, of := range ofSenders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newPlatformDesk(t)
			m := movers(t, 1)[name]
			d.ok(nil, m.line+" --verified")
			tenant := d.platform(t).Tenant(of.tenant)
			signing := func() (ends []string) {
				for _, endpoint := range of.endpoints {
					page, err := tenant.ListSecrets(t.Context(), endpoint)
					if err != nil {
						t.Fatal(err)
					}
					for _, s := range page.Data {
						if _, unlimited := s.ExpiresAt.Get(); unlimited != nil && !s.Signing {
							t.Errorf("the newest secret of %s does not sign", endpoint)
						}
					}
					ends = append(ends, page.Data[0].Hint)
				}
				return ends
			}
			now := func() (ends []string) {
				for _, endpoint := range of.endpoints {
					bare := strings.TrimRight(m.Secret(endpoint), "=")
					ends = append(ends, bare[len(bare)-4:])
				}
				return ends
			}
			before := now()
			m.Rotated, m.Bare = true, true
			var report moveReport
			d.ok(&report, m.line+" --verified --dry-run")
			for _, e := range report[0].Entries {
				if e.Kind == "endpoint" && e.Action != "updated" {
					t.Errorf("a dry run says %+v", e)
				}
			}
			if got := signing(); !slices.Equal(got, before) {
				t.Errorf("after a dry run %q sign, before it %q", got, before)
			}
			if d.ok(&report, m.line+" --verified"); report[0].Updated != 2 {
				t.Errorf("an import after the changes: %+v", report)
			}
			if got := signing(); !slices.Equal(got, now()) {
				t.Errorf("%q sign, there %q", got, now())
			}
			for _, endpoint := range of.endpoints {
				e, err := tenant.GetEndpoint(t.Context(), endpoint)
				if err != nil {
					t.Fatal(err)
				}
				if rate, err := e.RateLimit.Get(); len(e.CustomHeaders)+len(e.Metadata) > 0 || err == nil && name != "outpost" {
					t.Errorf("%s has %v, %v and the rate %d", endpoint, slices.Collect(maps.Keys(e.CustomHeaders)), e.Metadata, rate)
				}
			}
			if d.ok(&report, m.line+" --verified"); report[0].Unchanged != 2 {
				t.Errorf("another import: %+v", report)
			}
		})
	}
}

// TestASecretThatIsRotatedHereAfterTheCutOverStays: from then on the other sender no longer counts.
func TestASecretThatIsRotatedHereAfterTheCutOverStays(t *testing.T) {
	t.Parallel()
	d := newPlatformDesk(t)
	m := movers(t, 1)["svix"]
	line := m.line + " --verified --cut-over 2020-01-01T00:00:00Z"
	m.Rotated = true
	d.ok(nil, strings.Replace(line, "2020", "2999", 1))
	m.Rotated = false // between the import and the cut-over
	d.ok(nil, line)
	if !m.Disabled("ep_0_0") {
		t.Fatal("it was not cut over")
	}
	tenant := d.platform(t).Tenant("customer-0")
	newest := func() string {
		page, err := tenant.ListSecrets(t.Context(), "ep_0_0")
		if err != nil {
			t.Fatal(err)
		}
		return page.Data[0].Hint
	}
	bare := strings.TrimRight(m.Secret("ep_0_0"), "=")
	if got := newest(); !strings.HasSuffix(bare, got) {
		t.Errorf("after the cut-over the secret ends with %q, there with %q", got, bare[len(bare)-4:])
	}
	made, err := tenant.RotateSecret(t.Context(), "ep_0_0", client.RotateInput{})
	if err != nil {
		t.Fatal(err)
	}
	d.ok(nil, line)
	if got := newest(); got != made.Hint {
		t.Errorf("a further run rotated the secret to one that ends with %q", got)
	}
}

// TestACutOverWaitsForWhatCouldNotBeCopied: the values of Svix's sensitive headers have to be set by hand.
func TestACutOverWaitsForWhatCouldNotBeCopied(t *testing.T) {
	t.Parallel()
	d := newPlatformDesk(t)
	m := movers(t, 1)["svix"]
	m.Sensitive = []string{"Authorization"}
	past := m.line + " --verified --cut-over 2020-01-01T00:00:00Z"
	for _, line := range []string{m.line + " --verified", strings.Replace(past, "2020", "2999", 1), past} {
		var report moveReport
		d.report(t, &report, line)
		if problems := strings.Join(report[0].Problems, "\n"); d.run(line).code != 1 || !strings.Contains(problems, "Authorization. Set them here by hand") ||
			strings.Contains(line, "2020") != strings.Contains(problems, "not cut over") {
			t.Errorf("%s: %q", line, problems)
		}
	}
	if m.Disabled("ep_0_0") || m.Disabled("ep_0_1") {
		t.Fatal("it was cut over with an open note")
	}
	tenant := d.platform(t).Tenant("customer-0")
	for _, endpoint := range []string{"ep_0_0", "ep_0_1"} {
		headers := map[string]*string{"authorization": new("Bearer x"), "X-Team": nil}
		if _, err := tenant.UpdateEndpoint(t.Context(), endpoint, client.EndpointPatch{CustomHeaders: &headers}); err != nil {
			t.Fatal(err)
		}
	}
	d.ok(nil, past)
	if !m.Disabled("ep_0_0") || !m.Disabled("ep_0_1") {
		t.Error("it was not cut over")
	}
	d.ok(nil, past)
	e, err := tenant.GetEndpoint(t.Context(), "ep_0_0")
	if err != nil || len(e.CustomHeaders) != 2 || e.Status != "active" {
		t.Errorf("the endpoint is %v with %v, %v", e.Status, e.CustomHeaders, err)
	}
	d, m.Sensitive = newPlatformDesk(t), []string{"X-Other"}
	m.Disable("ep_0_0", false)
	d.ok(nil, past+" --accept-notes")
	if !m.Disabled("ep_0_0") {
		t.Error("it was not cut over with --accept-notes")
	}
}

func TestAnApplicationsRateAndMetadataAreKept(t *testing.T) {
	t.Parallel()
	d := newPlatformDesk(t)
	m := movers(t, 1)["svix"]
	m.Rate, m.Metadata = 10, map[string]string{"plan": "gold", "region": "eu"}
	d.ok(nil, m.line+" --verified")
	tenant, err := d.platform(t).GetTenant(t.Context(), "customer-0")
	if rate, unlimited := tenant.RateLimit.Get(); err != nil || !maps.Equal(tenant.Metadata, m.Metadata) || unlimited != nil || rate != 10 {
		t.Errorf("the tenant has %v and the rate %d, %v", tenant.Metadata, rate, err)
	}
	for _, endpoint := range []string{"ep_0_0", "ep_0_1"} { // of 10 and 11 requests a second of their own
		e, err := d.platform(t).Tenant("customer-0").GetEndpoint(t.Context(), endpoint)
		if rate, unlimited := e.RateLimit.Get(); err != nil || unlimited != nil || rate != 10 {
			t.Errorf("%s has the rate %d, %v", endpoint, rate, err)
		}
	}
}

// TestAWhiteLabelServersHeadersAreKept: its receivers verify webhook-id and not svix-id.
func TestAWhiteLabelServersHeadersAreKept(t *testing.T) {
	t.Parallel()
	for flag, prefix := range map[string]string{"": "svix-", " --white-label": ""} {
		d := newPlatformDesk(t)
		d.ok(nil, movers(t, 1)["svix"].line+" --verified"+flag)
		e, err := d.platform(t).Tenant("customer-0").GetEndpoint(t.Context(), "ep_0_0")
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if wire, err := e.Wire.Get(); err == nil && wire.HeaderPrefix != nil {
			got = *wire.HeaderPrefix
		}
		if e.Format != "standard" || got != prefix {
			t.Errorf("%q: format %s, prefix %q, want %q", flag, e.Format, got, prefix)
		}
	}
}
