package admin

import (
	"fmt"
	"net/url"
	"strings"

	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/reason"
	"posthorn/handlers"
)

// wish is what an operator asks for with a form: of which tenant where the path names one, and why.
type wish struct {
	url.Values
	of     id.UUID
	why    string
	unsaid error // what is wrong with the reason
}

// readWish reads a form, with a reason of at least so many characters.
func readWish(c *handlers.Call, least int) (w wish, err error) {
	if w.Values, err = c.Form(); err != nil {
		return w, err
	}
	w.why = strings.TrimSpace(w.Get("reason"))
	if wrong := reason.Faults(w.why, least); w.why == "" && least > 0 {
		w.unsaid = fault.InvalidField("reason", "text_length", fmt.Sprintf("Say why, in 1 to %d characters. It is kept in the audit log, where the tenant sees it.", reason.Max))
	} else if len(wrong) > 0 {
		w.unsaid = fault.InvalidFields(wrong)
	}
	return w, nil
}

// ofTenant reads a form about the tenant in the path. It asks for a reason, since the tenant will ask.
func ofTenant(c *handlers.Call) (w wish, err error) {
	u, err := c.ID(id.Tenant, tenantParam)
	if err != nil {
		return w, err
	}
	w, err = readWish(c, 1)
	w.of = u
	return w, err
}
