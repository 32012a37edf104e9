package admin

import (
	"fmt"
	"net/url"
	"strings"

	"posthorn/domain/fault"
	"posthorn/domain/id"
	"posthorn/domain/words"
	"posthorn/handlers"
)

// adminForm is what an operator requests with a form: for which tenant, if the path names one, and why.
type adminForm struct {
	url.Values
	tenant    id.UUID
	reason    string
	reasonErr error // what is wrong with the reason
}

// readAdminForm reads a form. Its reason has at least the given number of characters.
func readAdminForm(c *handlers.Call, least int) (w adminForm, err error) {
	if w.Values, err = c.Form(); err != nil {
		return w, err
	}
	w.reason = strings.TrimSpace(w.Get("reason"))
	if wrong := words.ReasonFaults(w.reason, least); w.reason == "" && least > 0 {
		w.reasonErr = fault.InvalidField("reason", "text_length", fmt.Sprintf("Enter a reason of 1 to %d characters. It is recorded in the audit log, where the tenant sees it.", words.MaxReason))
	} else if len(wrong) > 0 {
		w.reasonErr = fault.InvalidFields(wrong)
	}
	return w, nil
}

// readTenantForm reads a form about the tenant in the path. It requires a reason, because the tenant sees the action
// in its audit log.
func readTenantForm(c *handlers.Call) (w adminForm, err error) {
	tenantID := c.PathID(handlers.ConsoleTenantParam)
	w, err = readAdminForm(c, 1)
	w.tenant = tenantID
	return w, err
}
