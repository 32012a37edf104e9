package accounts

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"posthorn/db"
	"posthorn/db/seal"
	"posthorn/db/sql"
	"posthorn/domain/access"
	"posthorn/domain/account"
	"posthorn/domain/delivery"
	"posthorn/domain/health"
	"posthorn/domain/id"
	"posthorn/domain/incidents"
	"posthorn/domain/mail"
	"posthorn/domain/notice"
	"posthorn/domain/settings"
	"posthorn/domain/show"
)

// UnsubscribePurpose is the purpose of the tokens in unsubscribe links.
const UnsubscribePurpose = "unsubscribe"

// Links makes the URLs that mails contain.
type Links struct {
	BaseURL    string // the public URL, without a slash at the end
	ConsoleURL string // the URL of the console's host; empty: the same
	Keys       *seal.Ring
}

// ConsoleBase is the beginning of the console's URLs.
func (l Links) ConsoleBase() string { return cmp.Or(l.ConsoleURL, l.BaseURL) }

// tenantPage is the URL of a tenant's pages.
func (l Links) tenantPage(tenant id.UUID) string { return l.BaseURL + "/t/" + id.Tenant.Format(tenant) }

// Console is the URL of a tenant in the console.
func (l Links) Console(tenant id.UUID) string {
	return l.ConsoleBase() + ConsolePage(tenant)
}

// ConsolePage is the path of a tenant in the console.
func ConsolePage(tenant id.UUID) string { return "/console/tenants/" + id.Tenant.Format(tenant) }

// consoleEndpoint is the URL of an endpoint's deliveries in the console, with links to its tenant.
func (l Links) consoleEndpoint(tenant id.UUID, endpoint string) string {
	return l.ConsoleBase() + "/console/deliveries?tenant=" + id.Tenant.Format(tenant) + "&endpoint=" + endpoint
}

// Unsubscribe is the URL of a page where the recipient stops mails of a kind or selects others, without a sign-in.
func (l Links) Unsubscribe(s notice.Subscription) string {
	return l.BaseURL + unsubscribePath + l.Keys.Token(UnsubscribePurpose, s.Encode())
}

// MailNotices takes at most `most` new notices and puts a mail for each recipient into the outbox, in the transaction
// that marks the notices. So each notice is mailed once, even if a process is killed. It returns how many notices it
// handled.
func MailNotices(ctx context.Context, d *db.DB, links Links, most int32) (n int, err error) {
	err = d.Worker(ctx, func(q *sql.Queries) error {
		rows, err := q.TakeUnmailed(ctx, most)
		if err != nil {
			return err
		}
		n = len(rows)
		for _, r := range rows {
			if err := mailNotice(ctx, q, links, r); err != nil {
				return err
			}
			if err := q.MarkMailed(ctx, r.NoticeRow.TenantID, r.NoticeRow.ID); err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}

// NoticeRecipient is a person or contact who receives a notice by mail.
type NoticeRecipient struct {
	Name        string // as it is in the preferences
	Address     string
	Contact     bool // an address in the tenant's settings
	Unconfirmed bool // a contact that has not agreed yet: it gets no notice
}

// NoticeRecipients lists who receives a tenant's notices of a kind: members by role and preference, and the tenant's
// contacts, who see what an owner sees. No address is listed twice.
func NoticeRecipients(ctx context.Context, q *sql.Queries, tenant id.UUID, kind notice.Kind, contacts []string) ([]NoticeRecipient, error) {
	a, err := readAddressees(ctx, q, tenant, contacts)
	return a.of(kind), err
}

// addressees are all who can receive a tenant's notices, with their choices.
type addressees struct {
	members  []sql.NoticeMembersRow
	contacts []string
	chosen   map[choice]*bool
}

type choice struct {
	recipient string
	kind      notice.Kind
}

func readAddressees(ctx context.Context, q *sql.Queries, tenant id.UUID, contacts []string) (a addressees, err error) {
	rows, err := q.NoticePreferences(ctx, tenant)
	if err != nil {
		return a, err
	}
	a.contacts, a.chosen = contacts, map[choice]*bool{}
	for _, r := range rows {
		a.chosen[choice{r.Recipient, r.Kind}] = &r.Wanted
	}
	a.members, err = q.NoticeMembers(ctx, tenant)
	return a, err
}

// of lists those who receive a kind.
func (a addressees) of(kind notice.Kind) (all []NoticeRecipient) {
	known := map[string]bool{}
	add := func(r NoticeRecipient, role access.Role) {
		address := notice.AddressRecipient(r.Address)
		if !known[address] && kind.Wants(role, a.chosen[choice{r.Name, kind}]) {
			all = append(all, r)
		}
		known[address] = true
	}
	for _, m := range a.members {
		add(NoticeRecipient{Name: notice.PersonRecipient(m.PersonID), Address: m.Email}, access.Role(m.Role))
	}
	for _, address := range a.contacts {
		name := notice.AddressRecipient(address)
		agreed := a.chosen[choice{name, notice.ContactConfirmed}]
		add(NoticeRecipient{Name: name, Address: address, Contact: true, Unconfirmed: agreed == nil || !*agreed}, access.Owner)
	}
	return all
}

// unconfirmed lists those of a tenant's contacts that have not agreed to get its notices. A member's address counts as
// agreed, since the member verified it.
func unconfirmed(ctx context.Context, q *sql.Queries, t show.Tenant) ([]string, error) {
	left := []string{}
	contacts := t.Notices().Contacts
	if len(contacts) == 0 {
		return left, nil
	}
	recipients, err := NoticeRecipients(ctx, q, t.ID, notice.EndpointDisabled, contacts)
	if err != nil {
		return nil, err
	}
	for _, r := range recipients {
		if r.Unconfirmed {
			left = append(left, r.Address)
		}
	}
	return left, nil
}

func mailNotice(ctx context.Context, q *sql.Queries, links Links, r sql.TakeUnmailedRow) error {
	n := r.NoticeRow
	settings := notice.ReadSettings(r.TenantSettings)
	if !settings.Silences(n.Kind, muteOf(r.MutedAt, r.MutedUntil), n.CreatedAt) { // it appears on the tenant's pages
		if err := mailRecipients(ctx, q, links, r, settings); err != nil {
			return err
		}
	}
	if !n.Kind.AlertsOperators() || r.Trial {
		return nil
	}
	if wait, err := tryMail(ctx, q, account.OperatorAlerts, "alert of", n.TenantID.String()); err != nil || wait > 0 {
		return err
	}
	data := alertOf(links, r)
	if err := AlertOperators(ctx, q, incidents.Disabled, "notice:"+id.Notice.Format(n.ID), data); err != nil {
		return err
	}
	if n.EndpointID == nil {
		return nil
	}
	endpoint := id.Endpoint.Format(*n.EndpointID)
	return RaiseAlert(ctx, q, links, incidents.Alert{
		Kind:     incidents.Disabled,
		Key:      endpoint,
		Title:    data.What,
		Message:  data.Text(),
		Page:     links.page(data.Link),
		Tenant:   id.Tenant.Format(n.TenantID),
		Endpoint: endpoint,
	}, n.CreatedAt)
}

// mailRecipients puts a mail for each recipient of a notice into the outbox.
func mailRecipients(ctx context.Context, q *sql.Queries, links Links, r sql.TakeUnmailedRow, settings notice.Settings) error {
	n := r.NoticeRow
	recipients, err := NoticeRecipients(ctx, q, n.TenantID, n.Kind, settings.Contacts)
	if err != nil {
		return err
	}
	kind := mail.Notice
	if n.Kind == notice.Digest {
		kind = mail.Digest
	}
	for _, to := range recipients {
		if to.Unconfirmed {
			if err := askContact(ctx, q, links, n.TenantID, r.TenantName, to.Address); err != nil {
				return err
			}
			continue
		}
		if full, err := noticesLimited(ctx, q, n.TenantID, to); err != nil {
			return err
		} else if full {
			continue // the notice appears on the tenant's pages
		}
		subscription := links.Unsubscribe(notice.Subscription{Tenant: n.TenantID, Recipient: to.Name, Kind: n.Kind})
		if _, err := QueueMail(ctx, q, Mail{
			Tenant: &n.TenantID,
			Key:    "notice:" + id.Notice.Format(n.ID) + ":" + shortHash(to.Name),
			To:     to.Address,
			Kind:   kind,
			Keys:   links.Keys,
			Data: mail.NoticeData{
				Tenant:      id.Tenant.Format(n.TenantID),
				TenantName:  r.TenantName,
				Kind:        string(n.Kind),
				At:          n.CreatedAt,
				Details:     n.Details,
				Dashboard:   links.tenantPage(n.TenantID),
				Preferences: subscription,
				Unsubscribe: subscription,
			},
		}); err != nil {
			return err
		}
	}
	return nil
}

// askContacts asks those of a tenant's contacts that have not agreed to get its notices. Whoever was asked within the
// last week, or too often by other tenants, is left out. q can have the tenant's role.
func askContacts(ctx context.Context, q *sql.Queries, links Links, t show.Tenant) error {
	waiting, err := unconfirmed(ctx, q, t)
	if err != nil {
		return err
	}
	slices.Sort(waiting) // all transactions lock the limits in one order
	for _, address := range waiting {
		if err := askContact(ctx, q, links, t.ID, t.Name, address); err != nil {
			return err
		}
	}
	return nil
}

// askContact asks a contact whether it wants notices of the tenant: when its address is saved, and again when there is
// something to tell and a week has passed.
func askContact(ctx context.Context, q *sql.Queries, links Links, tenant id.UUID, name, address string) error {
	recipient := notice.AddressRecipient(address)
	wait, err := tryMail(ctx, q, account.ContactAsks, "contact", recipient, tenant.String())
	if err != nil || wait > 0 {
		return err
	}
	if wait, err = tryMail(ctx, q, account.AllContactAsks, "contact", recipient); err != nil || wait > 0 {
		return err
	}
	mailID := db.NewID()
	_, err = QueueMail(ctx, q, Mail{
		ID:     mailID,
		Tenant: &tenant,
		Key:    "contact:" + mailID.String(),
		To:     address,
		Kind:   mail.ConfirmContact,
		Keys:   links.Keys,
		Data: mail.ConfirmContactData{
			Tenant: name,
			Link: links.Unsubscribe(notice.Subscription{
				Tenant:    tenant,
				Recipient: recipient,
				Kind:      notice.EndpointDisabled,
			}),
		},
	})
	return err
}

// noticesLimited reports whether a recipient, or the tenant, has reached the maximum of notices by mail in an hour.
func noticesLimited(ctx context.Context, q *sql.Queries, tenant id.UUID, to NoticeRecipient) (full bool, err error) {
	var wait int
	if to.Contact {
		wait, err = tryMail(ctx, q, account.ContactNotices, "notice", to.Address)
	} else {
		wait, err = tryMail(ctx, q, account.MemberNotices, "notice", to.Address, tenant.String())
	}
	if err != nil || wait > 0 {
		return wait > 0, err
	}
	wait, err = tryMail(ctx, q, account.TenantNotices, "notice of", tenant.String())
	return wait > 0, err
}

// alertOf is the text of a notice for operators.
func alertOf(links Links, r sql.TakeUnmailedRow) mail.OperatorAlertData {
	n := r.NoticeRow
	var e notice.EndpointDetails
	_ = json.Unmarshal(n.Details, &e) // unreadable details are left out
	facts := []mail.Fact{{Name: "Tenant", Value: mail.TenantText(r.TenantName) + " (" + id.Tenant.Format(n.TenantID) + ")"}}
	for _, f := range []mail.Fact{
		{Name: "Endpoint", Value: e.Endpoint},
		{Name: "Host", Value: mail.TenantHost(e.URL)},
		{Name: "Description", Value: mail.TenantText(e.Description)},
		{Name: "Reason", Value: disabledWhy(e)},
		{Name: "Last response", Value: delivery.LastAnswerText(e.LastStatus, e.LastFailure)},
		{Name: "First failure", Value: moment(e.FirstFailureAt)},
		{Name: "Last failure", Value: moment(e.LastFailureAt)},
	} {
		if f.Value != "" {
			facts = append(facts, f)
		}
	}
	return mail.OperatorAlertData{
		What:     "An endpoint of “" + mail.TenantText(r.TenantName) + "” was disabled",
		Facts:    facts,
		At:       n.CreatedAt,
		Link:     links.consoleEndpoint(n.TenantID, e.Endpoint),
		LinkText: "View the endpoint's deliveries",
	}
}

// disabledWhy is the reason in words, with its code.
func disabledWhy(e notice.EndpointDetails) string {
	reason := health.Reason(e.Reason)
	if why := reason.Sentence(e.AuthStreak, e.ConsecutiveFailures); why != "" {
		return why + " (" + e.Reason + ")"
	}
	return e.Reason
}

func moment(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.UTC().Format("2 January 2006, 15:04") + " UTC"
}

// page is the path of an address in the console.
func (l Links) page(address string) string { return strings.TrimPrefix(address, l.ConsoleBase()) }

// AlertOperators puts a mail to every operator into the outbox, unless they muted the kind. key names the subject: each
// operator gets one mail for it.
func AlertOperators(ctx context.Context, q *sql.Queries, kind incidents.Kind, key string, data mail.OperatorAlertData) error {
	platform, err := q.PlatformSettings(ctx)
	if err != nil || !settings.On(kind.Setting(), platform) {
		return err
	}
	operators, err := q.AlertedOperators(ctx)
	if err != nil {
		return err
	}
	for _, o := range operators {
		if _, err := QueueMail(ctx, q, Mail{
			Key:  "alert:" + key + ":" + id.Operator.Format(o.ID),
			To:   o.Email,
			Kind: mail.OperatorAlert,
			Data: data,
		}); err != nil {
			return err
		}
	}
	return nil
}

// shortHash names a recipient in a key that other systems see.
func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:10])
}
