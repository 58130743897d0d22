package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/go-faster/errors"
	"go.temporal.io/api/workflowservice/v1"

	"earshot/bench/seeding"
)

func printJSON(what any) error {
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	if err := e.Encode(what); err != nil {
		return errors.Wrap(err, "print")
	}
	return nil
}

// table is rows of text. The first row is the head.
type table [][]string

// print aligns the columns and writes the table.
func (t table) print(to io.Writer) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, row := range t {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush()
}

// markdown returns the table as Markdown.
func (t table) markdown() string {
	var text strings.Builder
	for i, row := range t {
		fmt.Fprintf(&text, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			text.WriteString("|" + strings.Repeat("---|", len(row)) + "\n")
		}
	}
	return text.String()
}

// csv returns the table as comma-separated values.
func (t table) csv() string {
	var text strings.Builder
	_ = csv.NewWriter(&text).WriteAll(t) // writing to memory never fails
	return text.String()
}

func printTable(to io.Writer, subjects []subject, results map[string][]measured) {
	all := figures(subjects, results)
	for _, row := range all[1:] {
		// A terminal has room only for the nearest floor.
		row[len(row)-1], _, _ = strings.Cut(row[len(row)-1], "; ")
	}
	all.print(to)
}

// figures returns a row for each subject, with the ratio to each of its floors.
func figures(subjects []subject, results map[string][]measured) table {
	all := table{{"", "per second", "range", "p50", "p99", "CPU/op", "of its floors"}}
	for _, b := range subjects {
		runs := results[b.name]
		m := median(runs)
		low, high := slices.MinFunc(runs, bySpeed), slices.MaxFunc(runs, bySpeed)
		all = append(all, []string{
			b.name, whole(m.PerSecond), whole(low.PerSecond) + "-" + whole(high.PerSecond), brief(m.P50), brief(m.P99), ms(m.CPU.Total()) + " ms",
			ratios(b, results),
		})
	}
	return all
}

// ratios compares a subject with each of its floors: by speed, or by p50 for a subject with a fixed
// rate.
func ratios(b subject, results map[string][]measured) string {
	var parts []string
	for _, name := range b.floors {
		runs := results[name]
		if len(runs) == 0 {
			continue
		}
		floor, m := median(runs), median(results[b.name])
		short := strings.TrimPrefix(name, "floor: ")
		if b.byLatency {
			parts = append(parts, fmt.Sprintf("%.1f times the p50 of %s", float64(m.P50)/float64(floor.P50), short))
		} else {
			parts = append(parts, fmt.Sprintf("%.2f of %s", m.PerSecond/floor.PerSecond, short))
		}
	}
	return strings.Join(parts, "; ")
}

func whole(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) }

func ms(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

// processes returns the processor time of an operation for each process.
func processes(subjects []subject, results map[string][]measured) table {
	all := table{{"milliseconds of processor time", "service", "Postgres", "Temporal", "client", "together", "log, kB", "commits"}}
	for _, b := range subjects {
		m := median(results[b.name])
		all = append(all, []string{
			b.name, ms(m.CPU.Service), ms(m.CPU.Postgres), ms(m.CPU.Temporal), ms(m.CPU.Client), ms(m.CPU.Total()), ms(m.WALBytes / 1000), ms(m.Commits),
		})
	}
	return all
}

// machine describes the machine and the versions of the servers.
func (s *stack) machine(ctx context.Context) (string, error) {
	var postgres, buffers, durable string
	err := s.pool.QueryRow(ctx, `SELECT split_part(current_setting('server_version'), ' ', 1), current_setting('shared_buffers'), current_setting('fsync')`).
		Scan(&postgres, &buffers, &durable)
	if err != nil {
		return "", errors.Wrap(err, "ask for Postgres' version")
	}
	info, err := s.temporal.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
	if err != nil {
		return "", errors.Wrap(err, "ask for Temporal's version")
	}
	text := fmt.Sprintf("%d processors", runtime.NumCPU())
	if total := meminfo(); total > 0 {
		text += fmt.Sprintf(" and %d GiB of memory, %s/%s", total>>30, runtime.GOOS, runtime.GOARCH)
	}
	return text + fmt.Sprintf("; %s; Postgres %s with %s of shared buffers and fsync %s; Temporal server %s. Load, receiver, service, Postgres and Temporal share the machine.",
		strings.Replace(runtime.Version(), "go", "Go ", 1), postgres, buffers, durable, info.GetServerVersion()), nil
}

// meminfo returns the machine's memory in bytes, or 0 if the system doesn't report it.
func meminfo() uint64 { return procLine("/proc/meminfo", "MemTotal:") }

func megabytes(v uint64) string {
	if v == 0 {
		return "-"
	}
	return strconv.FormatUint(v>>20, 10)
}

const resultsFile = "bench/results.md"

func (s *stack) writeResults(ctx context.Context, o options, subjects []subject, results map[string][]measured, took time.Duration) error {
	machine, err := s.machine(ctx)
	if err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, `# Results

By `+"`make bench ARGS=-write`"+`, in %s. %s

Each figure is the median of %d runs of %s, with their range. A floor runs half as long; a burst has %d posts. Measurements with a webhook use %d
connections, the others half of them. After each run the ledger is checked: every acknowledged write is there once, counters equal the rows,
and each webhook arrived once with a valid signature. Without a rate, requests follow each other at once, and the speeds are compared. With a
rate, latency counts from the time at which a request was due, and the p50 are compared. Data: %s.

## Figures
%s
`+"`bench/processor.csv`"+` has the processor time of each operation for each process. An operation's time is the time of the whole run divided by its
operations. It contains the work of idle processes, which shows at low rates. The client is the load with its receiver.

## Memory
Peak memory of each process, in MiB. For Postgres: the largest sum of its processes at the end of a run, with shared memory counted once.

%s`, took.Round(time.Second), machine, o.runs, o.period, o.posts, o.connections, s.sizeText(ctx), figures(subjects, results).markdown(),
		s.memoryTable().markdown())
	if err := writeFile(resultsFile, text.String()); err != nil {
		return err
	}
	return writeFile("bench/processor.csv", processes(subjects, results).csv())
}

func (s *stack) memoryTable() table {
	m := s.meters.memory()
	return table{
		{"service", "Postgres", "Temporal", "client"},
		{megabytes(m.Service), megabytes(m.Postgres), megabytes(m.Temporal), megabytes(m.Client)},
	}
}

// sizeText describes the seeded organization.
func (s *stack) sizeText(ctx context.Context) string {
	var size seeding.Size
	err := s.pool.QueryRow(ctx, `SELECT (SELECT count(*) FROM contacts WHERE organization_id = o.id), (SELECT count(*) FROM posts WHERE organization_id = o.id AND slug LIKE 'post-%'),
		(SELECT coalesce(max(vote_count), 0) FROM posts WHERE organization_id = o.id) FROM organizations o WHERE name = $1`, seeding.Organization).
		Scan(&size.Contacts, &size.Posts, &size.Votes)
	if err != nil {
		return "no seeded organization"
	}
	return fmt.Sprintf("an organization with %d contacts and %d posts, one of them with %d votes", size.Contacts, size.Posts, size.Votes)
}

func writeFile(name, text string) error {
	//nolint:gosec // a document of the repository, for everybody to read
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		return errors.Wrap(err, "write the results, which is done at the root of the repository")
	}
	fmt.Fprintln(os.Stderr, "written:", name)
	return nil
}
