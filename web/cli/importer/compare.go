package importer

import (
	"context"
	"slices"
	"strings"

	"posthorn/client"
	rules "posthorn/domain/endpoint"
)

// secret is the secret that the other sender signs with; empty where nobody says.
func (m *move) secret(x endpoint) string {
	if named := m.Secrets[x.id]; named != "" {
		return named
	}
	return x.secret
}

// keepHidden keeps here the headers whose values the other server does not show, and notes those that are not set here.
func (x *endpoint) keepHidden(e client.Endpoint) {
	if x.fields == nil {
		return
	}
	var missing []string
	headers := map[string]string{}
	if given, ok := x.fields["custom_headers"].(map[string]string); ok {
		headers = given
	}
	for _, name := range x.hidden {
		found := false
		for stored := range e.CustomHeaders {
			if strings.EqualFold(stored, name) {
				headers[stored], found = rules.Marker, true
			}
		}
		if !found {
			missing = append(missing, name)
		}
	}
	x.fields["custom_headers"] = headers
	if len(missing) > 0 {
		slices.Sort(missing)
		x.notes = append(x.notes, "The other server does not show the values of its headers "+strings.Join(missing, ", ")+". Set them here by hand.")
	}
}

// followSecret brings the secret of an endpoint that is here to what the other sender signs with. A rotation there ends
// with its cut-over: from then on secrets are rotated here. The old secret still verifies during the overlap, as there.
func (m *move) followSecret(ctx context.Context, t tenant, x *endpoint, e client.Endpoint) error {
	if e.ID == "" || x.fields == nil || e.Metadata[cutOverMark] == cutOverDone {
		return nil
	}
	tenant, secret := m.to.Tenant(t.external), m.secret(*x)
	page, err := tenant.ListSecrets(ctx, e.ID)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(page.Data, func(s client.Secret) bool {
		_, ends := s.ExpiresAt.Get()
		return ends != nil
	})
	if i < 0 {
		return nil
	}
	newest := page.Data[i]
	public, _ := newest.PublicKey.Get()
	switch {
	case secret == "" && x.public != "" && public != x.public:
		x.notes = append(x.notes, "Its key is another one there, and the server shows its public half alone. Add it to the file of --secrets.")
		return nil
	case secret == "", rules.CanBe(secret, newest.Hint) && newest.Hint != "":
		return nil
	case newest.Hint == "":
		x.notes = append(x.notes, "Its secret is too short to be compared. If it was rotated there since the first import, rotate it here by hand.")
		return nil
	}
	if x.rotated = true; m.DryRun {
		return nil
	}
	if _, err := tenant.RotateSecret(ctx, e.ID, client.RotateInput{Secret: &secret}); err != nil {
		return err
	}
	// Where one secret signs at a time, it is the new one, as there.
	if _, err = tenant.SwitchSecret(ctx, e.ID); client.Code(err) == "secret_not_switched" {
		return nil
	}
	return err
}
