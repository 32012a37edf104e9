package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// row is one line of the table.
type row struct {
	Scenario string `json:"scenario"`
	Name     string `json:"name"`
	result
	Against float64 `json:"against,omitempty"` // median of R by R of the row without the burden, pair by pair
}

// report gathers the rows of one run.
type report struct {
	Machine  string    `json:"machine"`
	Began    time.Time `json:"began"`
	Rows     []row     `json:"rows"`
	Promises []promise `json:"promises"`
	Costs    []cost    `json:"costs,omitempty"`
}

// promise is one target and what the run says about it.
type promise struct {
	What string  `json:"what"`
	Want string  `json:"want"`
	Got  float64 `json:"got"`
	Met  bool    `json:"met"`
}

func (rep *report) add(scenario, name string, r result) {
	rep.Rows = append(rep.Rows, row{Scenario: scenario, Name: name, result: r})
}

// backlog notes on a scenario's last rows how much was waiting behind them.
func (rep *report) backlog(scenario string, waiting int64) {
	for i := range rep.Rows {
		if rep.Rows[i].Scenario == scenario && !strings.HasSuffix(rep.Rows[i].Name, without) {
			rep.Rows[i].Backlog = waiting
		}
	}
}

// find returns the row of the scenario with this name prefix, or nil.
func (rep *report) find(scenario, name string) *row {
	i := slices.IndexFunc(rep.Rows, func(r row) bool {
		return r.Scenario == scenario && strings.HasPrefix(r.Name, name)
	})
	if i < 0 {
		return nil
	}
	return &rep.Rows[i]
}

// faulty says whether anything was lost or doubled, which no speed makes up for.
func (rep *report) faulty() bool {
	return slices.ContainsFunc(rep.Rows, func(r row) bool { return r.Lost != 0 || r.Duplicates != 0 })
}

// assess compares the rows with what docs/performance.md promises. Ratios compare medians of the same run.
func (rep *report) assess() {
	rep.Promises = nil
	atLeast := func(what string, got, want float64) {
		rep.Promises = append(rep.Promises, promise{what, fmt.Sprintf("at least %g", want), got, got >= want})
	}
	atMost := func(what string, got, want float64) {
		rep.Promises = append(rep.Promises, promise{what, fmt.Sprintf("at most %g", want), got, got <= want})
	}
	if r := rep.find("one-to-one", light); r != nil {
		atMost("light load, p50 ms", r.P50, 5)
		atMost("light load, p99 ms", r.P99, 20)
	}
	if r := rep.find(halfStem, halfStem); r != nil {
		atMost("half of the throughput, p99 ms", r.P99, 25)
	}
	if r := rep.find("cold", ""); r != nil {
		atMost("cold lanes, p99 ms", r.P99, 50)
	}
	rep.compare("history", 0, func(plain, with *row) {
		atLeast("history, deliveries/s against without", with.EndToEnd/plain.EndToEnd, 0.95)
	})
	rep.compare("stuck", 0, func(plain, with *row) {
		atLeast("stuck neighbours, deliveries/s against without", with.EndToEnd/plain.EndToEnd, 0.85)
		atMost("stuck neighbours, p99 under full load against without", with.P99/plain.P99, 1.15)
	})
	rep.compare("stuck", 1, func(plain, with *row) {
		atMost("stuck neighbours, p99 at light load against without", with.P99/plain.P99, 1.15)
	})
	rep.compare("recovery", 0, func(plain, with *row) {
		atLeast("a week's backlog beside, deliveries/s against without", with.EndToEnd/plain.EndToEnd, 0.85)
	})
	rep.compare("recovery", 1, func(plain, with *row) {
		atMost("a week's backlog beside, p99 at light load against without", with.P99/plain.P99, 1.15)
	})
	if own, theirs := rep.find("svix", ownAPI), rep.find("svix", svixAPI); own != nil && theirs != nil {
		atMost("emission through the Svix API, time of an event against our own", own.Ingest/theirs.Ingest, mostForSvix)
	}
	rep.compare(tracesStem, 0, func(_, with *row) {
		atMost("a tenth of the traces exported, R against without", with.Against, mostForTraces)
	})
	rep.compare(shapedStem, 0, func(plain, with *row) {
		atLeast("endpoints with an expression, deliveries/s against without", with.EndToEnd/plain.EndToEnd, 0.85)
	})
	if plain, with := rep.find(batchesStem, drained+without), rep.find(batchesStem, drained+together); plain != nil && with != nil {
		atLeast("a hundred events in a request, events for the same CPU of the receiver", plain.Outside/with.Outside, 10)
		atLeast("a hundred events in a request, events for the same CPU of all processes", plain.all()/with.all(), leastForBatches)
	}
	rep.compare("fairness", 1, func(plain, with *row) {
		atMost("a tenant with thousands of busy endpoints, p99 of others at light load against without", with.P99/plain.P99, 2)
	})
	for _, r := range rep.Rows {
		if r.Page && !strings.HasSuffix(r.Name, inStorage) {
			atMost(r.Name+", p95 ms", r.P99, mostForPages)
		}
	}
	var rss float64
	var duplicates, lost int64
	for _, r := range rep.Rows {
		rss, duplicates, lost = max(rss, r.RSS), duplicates+r.Duplicates, lost+r.Lost
	}
	if rss > 0 {
		atMost("highest RSS of all runs, MiB", rss, 150)
	}
	atMost("duplicates", float64(duplicates), 0)
	atMost("lost", float64(lost), 0)
}

// compare passes a scenario's rows without and with its burden to a function: those under full load (0) or at light
// load (1).
func (rep *report) compare(scenario string, which int, assess func(plain, with *row)) {
	name := []string{oneToOne, light}[which]
	plain := rep.find(scenario, name+without)
	for i := len(rep.Rows) - 1; i >= 0 && plain != nil; i-- {
		with := &rep.Rows[i]
		if with.Scenario == scenario && strings.HasPrefix(with.Name, name+",") && with.Name != plain.Name {
			assess(plain, with)
			return
		}
	}
}

// all is the CPU of a delivery in all processes, in µs.
func (r result) all() float64 { return r.CPU + r.PostgreSQL + r.Outside }

func (r result) String() string {
	s := fmt.Sprintf("%.0f accepted/s, %.0f deliveries/s, p50 %.1f ms, p99 %.1f ms, CPU %.0f + %.0f beside %.0f µs: R %.2f, WAL %.0f B, "+
		"RSS %.0f MiB, the machine paused for %.0f ms and its disk for %.0f, %d duplicates, %d lost",
		r.Ingest, r.EndToEnd, r.P50, r.P99, r.CPU, r.PostgreSQL, r.Outside, r.Ratio, r.WAL, r.RSS, r.CPUPause, r.Disk, r.Duplicates, r.Lost)
	if r.Refused > 0 || r.Problem != "" {
		s += fmt.Sprintf(", %d refused (%s)", r.Refused, r.Problem)
	}
	return s
}

// write prints the table as Markdown, for the terminal and for docs/performance.md.
func (rep *report) write(w io.Writer) error {
	rep.assess()
	if _, err := fmt.Fprintf(w, "\n%s, %s\n\n", rep.Machine, rep.Began.UTC().Format("2006-01-02 15:04 UTC")); err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintln(table, "| what\t| accepted/s\t| deliveries/s\t| p50 ms\t| p99 ms\t| RSS MiB\t| CPU µs a delivery (Posthorn + PostgreSQL)\t| generator + receiver\t| R\t| WAL bytes\t| refused\t| duplicates\t| lost\t|")
	fmt.Fprintln(table, "| ---\t| --:\t| --:\t| --:\t| --:\t| --:\t| --:\t| --:\t| --:\t| --:\t| --:\t| --:\t| --:\t|")
	for _, r := range rep.Rows {
		name := r.Name
		if r.Scenario != "raw" && r.Scenario != r.Name {
			name = r.Scenario + ": " + name
		}
		fmt.Fprintf(table, "| %s\t| %.0f\t| %.0f\t| %.1f\t| %.1f\t| %.0f\t| %.0f + %.0f\t| %.0f\t| %.2f\t| %.0f\t| %d\t| %d\t| %d\t|\n",
			name, r.Ingest, r.EndToEnd, r.P50, r.P99, r.RSS, r.CPU, r.PostgreSQL, r.Outside, r.Ratio, r.WAL, r.Refused,
			r.Duplicates, r.Lost)
	}
	if len(rep.Costs) > 0 {
		fmt.Fprintln(table, "\n| part\t| an event\t| each delivery\t| a delivery at a fan-out of ten, all included\t|")
		fmt.Fprintln(table, "| ---\t| --:\t| --:\t| --:\t|")
		for _, c := range rep.Costs {
			fmt.Fprintf(table, "| %s\t| %.0f\t| %.0f\t| %.0f\t|\n", c.What, c.Event, c.Delivery, c.FanOut)
		}
	}
	fmt.Fprintln(table)
	fmt.Fprintln(table, "| promise\t| wanted\t| measured\t| held\t|")
	fmt.Fprintln(table, "| ---\t| ---\t| --:\t| ---\t|")
	for _, p := range rep.Promises {
		held := "yes"
		if !p.Met {
			held = "**no**"
		}
		fmt.Fprintf(table, "| %s\t| %s\t| %.2f\t| %s\t|\n", p.What, p.Want, p.Got, held)
	}
	return table.Flush()
}

func (rep *report) writeJSON(file string) error {
	text, err := json.MarshalIndent(rep, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o600)
}

// middle is the median, the mean of the two middle ones where their number is even.
func middle(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	half := len(values) / 2
	if len(values)%2 == 1 {
		return values[half]
	}
	return (values[half-1] + values[half]) / 2
}
