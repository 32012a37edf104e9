package cli

import (
	"fmt"
	"strconv"
	"strings"

	"posthorn/web/cli/importer"
)

// report prints what became of each tenant; a dry run prints what would become of each endpoint.
func (f moveFlags) report(e *Env, done []importer.Result) error {
	failed := 0
	for _, a := range done {
		if len(a.Problems) > 0 {
			failed++
		}
	}
	err := shared{JSON: f.JSON}.show(e, done, func() {
		if f.DryRun {
			e.wouldMove(done)
			return
		}
		e.moved(done)
	})
	if err == nil && failed > 0 {
		return fail(ExitFailed, "%d of %d tenants have problems.", failed, len(done))
	}
	return err
}

func (e *Env) moved(done []importer.Result) {
	rows := make([][]string, len(done))
	for i, a := range done {
		what := strings.Join(a.Problems, "; ")
		if what == "" && a.CutOver {
			what = "cut over"
		}
		rows[i] = []string{
			a.Tenant, strconv.Itoa(a.Endpoints), strconv.Itoa(a.Created), strconv.Itoa(a.Updated),
			strconv.Itoa(a.Unchanged), oneLine(what, 300),
		}
	}
	e.table([]string{"TENANT", "ENDPOINTS", "CREATED", "UPDATED", "UNCHANGED", ""}, rows)
	for _, a := range done {
		for _, entry := range a.Entries {
			for _, note := range entry.Notes {
				e.notef("%s, %s: %s\n", a.Tenant, entry.Name, note)
			}
		}
	}
}

func (e *Env) wouldMove(done []importer.Result) {
	var rows [][]string
	tenants, endpoints := 0, 0
	for _, a := range done {
		tenants++
		if len(a.Entries) == 0 {
			rows = append(rows, []string{a.Tenant, "", "", "", oneLine(strings.Join(a.Problems, "; "), 300)})
		}
		for _, entry := range a.Entries {
			if entry.Kind == "endpoint" && entry.Action != "left_out" {
				endpoints++
			}
			detail := strings.Join(entry.Notes, " ")
			if entry.URL != "" {
				detail = fmt.Sprintf("%s, %s, %s. %s", importer.WithoutQuery(entry.URL), strings.Join(entry.EventTypes, " "), entry.State, detail)
			}
			rows = append(rows, []string{
				a.Tenant, entry.Kind, entry.Name, strings.ReplaceAll(entry.Action, "_", " "),
				oneLine(detail, 300),
			})
		}
	}
	e.table([]string{"TENANT", "WHAT", "NAME", "WOULD BE", ""}, rows)
	e.notef("%s, %s. Nothing was done.\n", plural(tenants, "tenant"), plural(endpoints, "endpoint"))
}
