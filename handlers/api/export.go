package api

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/flate"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"posthorn/db"
	"posthorn/db/accounts"
	"posthorn/db/days"
	"posthorn/db/deliveries"
	"posthorn/db/endpoints"
	"posthorn/db/events"
	"posthorn/domain/catalogue"
	"posthorn/domain/fault"
	"posthorn/domain/history"
	"posthorn/domain/id"
	"posthorn/domain/show"
	"posthorn/handlers"
)

// maxExports bounds the concurrent exports of a process: each one is as slow as its reader.
const maxExports = 2

var errExports = &fault.Error{
	Kind:       fault.Unavailable,
	Code:       "exports_limit",
	RetryAfter: 60,
	Detail:     "This server is already running its maximum of concurrent exports. Try again when one has finished.",
}

// Exporter responds to a call with all data of a tenant, as one file.
type Exporter func(c *handlers.Call, tenant id.UUID, reason string) error

// NewExporter creates an Exporter. Callers that share it share its limit.
func NewExporter(d Deps) Exporter {
	places := make(chan struct{}, maxExports)
	return func(c *handlers.Call, tenant id.UUID, reason string) error {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		default:
			return errExports
		}
		e, err := deliveries.BeginExport(c.Ctx(), d.DB, tenant, reason, c.Author())
		if err != nil {
			return err
		}
		name := id.Tenant.Format(tenant) + "-" + e.At.UTC().Format("20060102T150405Z") + ".zip"
		return c.Download(name, "application/zip", func(w io.Writer) error {
			out := bufio.NewWriterSize(w, 64<<10)
			x := &export{Export: e, deps: d, call: c, zip: zip.NewWriter(out), lines: map[string]int{}}
			if err := x.write(); err != nil {
				return err
			}
			if err := out.Flush(); err != nil {
				return err
			}
			return e.End(c.Ctx(), x.lines, c.Author())
		})
	}
}

func (a *api) exportTenant(c *handlers.Call) error {
	tenantID := c.PathID(handlers.TenantParam)
	reason, err := readReason(c)
	if err != nil {
		return err
	}
	return a.Exporter(c, tenantID, reason)
}

// export is an export in progress: a file for each kind of object, with a line of JSON for each, as in the API.
type export struct {
	*deliveries.Export
	deps  Deps
	call  *handlers.Call
	zip   *zip.Writer
	into  *json.Encoder  // lines of the current file
	raw   io.Writer      // bytes of the current file
	lines map[string]int // by file
	file  string
}

// exportPage is how many small rows are read in one statement.
const exportPage = 200

func (x *export) write() error {
	x.zip.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestSpeed)
	})
	for _, part := range []struct {
		file string
		fill func() error
	}{
		{"tenant.json", x.tenant},
		{"members.ndjson", x.members},
		{"invitations.ndjson", x.invitations},
		{"keys.ndjson", x.keys},
		{"portal_links.ndjson", x.portalLinks},
		{"event_types.ndjson", x.eventTypes},
		{"endpoints.ndjson", x.endpoints},
		{"events.ndjson", x.events},
		{"rejected.ndjson", x.rejected},
		{"deliveries.ndjson", x.deliveries},
		{"history.ndjson", x.history},
		{"bulk_jobs.ndjson", x.bulkJobs},
		{"notices.ndjson", x.notices},
		{"audit_log.ndjson", x.auditLog},
	} {
		if err := x.add(part.file, part.fill); err != nil {
			return err
		}
	}
	if err := x.Still(x.call.Ctx()); err != nil {
		return err
	}
	// The manifest is the last file: an archive that has it is complete.
	if err := x.add("manifest.json", func() error {
		return x.into.Encode(map[string]any{"tenant_id": id.Tenant.Format(x.Tenant.ID), "at": x.At.UTC(), "lines": x.lines})
	}); err != nil {
		return err
	}
	return x.zip.Close()
}

// add writes one file.
func (x *export) add(file string, fill func() error) error {
	w, err := x.zip.CreateHeader(&zip.FileHeader{Name: file, Method: zip.Deflate, Modified: x.At.UTC()})
	if err != nil {
		return err
	}
	x.file, x.raw, x.into = file, w, json.NewEncoder(w)
	x.into.SetEscapeHTML(false)
	if strings.HasSuffix(file, ".ndjson") {
		x.lines[file] = 0
	}
	if err := fill(); err != nil {
		return fmt.Errorf("export %s: %w", file, err)
	}
	return nil
}

func (x *export) line(v any) error {
	x.lines[x.file]++
	return x.into.Encode(v)
}

// exportPages writes a list, page by page.
func exportPages[R, P, V any](
	x *export,
	place P,
	read func(ctx context.Context, q *db.Tx, after P) ([]R, error),
	of func(R) P,
	view func(R) V,
) error {
	for {
		var rows []R
		err := x.Read(x.call.Ctx(), func(ctx context.Context, q *db.Tx) (err error) {
			rows, err = read(ctx, q, place)
			return err
		})
		if err != nil {
			return err
		}
		for _, r := range rows {
			if err := x.line(view(r)); err != nil {
				return err
			}
		}
		if len(rows) < exportPage {
			return nil
		}
		place = of(rows[len(rows)-1])
	}
}

// exportList writes a list of nouns, page by page, the oldest first.
func exportList[T, V any](x *export, read func(ctx context.Context, q *db.Tx, r show.Range) (show.Page[T], error), encode func(T) V) error {
	for r := (show.Range{Ascending: true, Limit: exportPage}); ; {
		var found show.Page[T]
		err := x.Read(x.call.Ctx(), func(ctx context.Context, q *db.Tx) (err error) {
			found, err = read(ctx, q, r)
			return err
		})
		if err != nil {
			return err
		}
		for _, row := range found.Rows {
			if err := x.line(encode(row)); err != nil {
				return err
			}
		}
		if r.After = found.Next; r.After == nil {
			return nil
		}
	}
}

func (x *export) tenant() error {
	var t Tenant
	var used accounts.Usage
	err := x.Read(x.call.Ctx(), func(ctx context.Context, q *db.Tx) error {
		is, platform, err := accounts.ReadTenant(ctx, q, x.Tenant.ID)
		if err != nil {
			return err
		}
		t = encodeTenant(is, platform)
		used, err = accounts.ReadUsage(ctx, q, x.Tenant.ID, x.deps.Settings.EndpointsPerTenant, x.deps.Settings.MaxPayload, x.deps.Now())
		return err
	})
	if err != nil {
		return err
	}
	return x.into.Encode(struct {
		Tenant
		Usage Usage `json:"usage"`
	}{t, usageView(used)})
}

func (x *export) members() error {
	return exportList(x, func(ctx context.Context, q *db.Tx, r show.Range) (show.Page[show.Member], error) {
		return accounts.ListMembers(ctx, q, x.Tenant.ID, r)
	}, encodeMember)
}

func (x *export) invitations() error {
	return exportList(x, func(ctx context.Context, q *db.Tx, r show.Range) (show.Page[show.Invitation], error) {
		return accounts.ListInvitations(ctx, q, x.Tenant.ID, r)
	}, encodeInvitation)
}

func (x *export) keys() error {
	return exportList(x, func(ctx context.Context, q *db.Tx, r show.Range) (show.Page[show.Key], error) {
		return accounts.ListKeys(ctx, q, x.Tenant.ID, r)
	}, encodeKey)
}

func (x *export) portalLinks() error {
	return exportList(x, func(ctx context.Context, q *db.Tx, r show.Range) (show.Page[show.PortalLink], error) {
		return accounts.ListPortalLinks(ctx, q, x.Tenant.ID, r)
	}, encodePortalLink)
}

func (x *export) bulkJobs() error {
	return exportList(x, func(ctx context.Context, q *db.Tx, r show.Range) (show.Page[show.Job], error) {
		return deliveries.BulkJobs(ctx, q, x.Tenant.ID, r)
	}, bulkJobView)
}

// history lists the days whose rows are in no other file, newest first.
func (x *export) history() error {
	return exportList(x, func(ctx context.Context, q *db.Tx, r show.Range) (show.Page[history.Day], error) {
		return days.List(ctx, q, x.Tenant.ID, r)
	}, historyView)
}

func (x *export) eventTypes() error {
	return exportList(x, func(ctx context.Context, q *db.Tx, r show.Range) (show.Page[catalogue.Entry], error) {
		return events.Types(ctx, q, x.Tenant.ID, r)
	}, eventTypeView)
}

func (x *export) endpoints() error {
	return exportPages(x, id.UUID{}, func(ctx context.Context, q *db.Tx, after id.UUID) ([]show.Endpoint, error) {
		return endpoints.List(ctx, q, x.deps.Keys, x.Tenant.ID, endpoints.ListOptions{
			Kind:      endpoints.EveryKind,
			Ascending: true,
			After:     after,
			Limit:     exportPage,
		})
	}, func(e show.Endpoint) id.UUID { return e.ID }, encodeEndpoint)
}

func (x *export) events() error {
	return x.Events(x.call.Ctx(), func(rows []show.Event) error {
		for _, e := range rows {
			text, err := eventText(e)
			if err != nil {
				return err
			}
			if bytes.ContainsAny(text[:len(text)-1], "\r\n") { // a line of JSON has no white space between its tokens
				var compact bytes.Buffer
				if err := json.Compact(&compact, text); err != nil {
					return err
				}
				text = append(compact.Bytes(), '\n')
			}
			x.lines[x.file]++
			if _, err := x.raw.Write(text); err != nil {
				return err
			}
		}
		return nil
	})
}

// exportedRejected is a rejected event of the outbox with its data. The data is null if it is larger than any
// event's.
type exportedRejected struct {
	RejectedEvent
	Data json.RawMessage `json:"data"`
}

func (x *export) rejected() error {
	return x.Rejected(x.call.Ctx(), func(rows []show.Rejected) error {
		for _, r := range rows {
			if err := x.line(exportedRejected{rejectedView(r), r.Data}); err != nil {
				return err
			}
		}
		return nil
	})
}

// exportedDelivery is a delivery with its attempts.
type exportedDelivery struct {
	Delivery
	Attempts []Attempt `json:"attempts"`
}

func (x *export) deliveries() error {
	return x.Deliveries(x.call.Ctx(), func(rows []deliveries.ExportedDelivery) error {
		for _, d := range rows {
			if err := x.line(exportedDelivery{encodeDelivery(d.Delivery), views(d.Tries, encodeAttempt)}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (x *export) notices() error {
	return exportList(x, func(ctx context.Context, q *db.Tx, r show.Range) (show.Page[show.Notice], error) {
		return accounts.ListNotices(ctx, q, x.Tenant.ID, accounts.NoticeList{}, r)
	}, encodeNotice)
}

func (x *export) auditLog() error {
	return exportList(x, func(ctx context.Context, q *db.Tx, r show.Range) (show.Page[show.AuditEntry], error) {
		return db.TenantAudit(ctx, q, x.Tenant.ID, "", r)
	}, encodeAuditEntry)
}
