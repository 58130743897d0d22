// Package devstack starts and stops the two servers that Earshot needs on a
// developer's machine and in tests: a private Postgres cluster and a Temporal
// dev server. Nothing has to be prepared on Debian, Ubuntu or macOS.
//
// It owns the processes, their directories, their ports and the search for
// their binaries. A server belongs to the program that started it: it survives
// a Ctrl-C in the terminal, so that the program can stop things in order, and
// it ends when the program is killed (at once on Linux, at the next start from
// the same directory elsewhere).
//
// StartTemporalServer starts the production program, temporal-server, in place of the dev
// server. It keeps its two databases in a Postgres. Each start in a directory uses the same
// ports.
//
//	programs, err := devstack.TemporalServerPrograms(ctx, root, report)
//	postgres, err := devstack.StartPostgres(ctx, devstack.PostgresOptions{Dir: …, Durable: true})
//	temporal, err := devstack.StartTemporalServer(ctx, devstack.TemporalServerOptions{
//		Dir: …, Programs: programs, Database: postgres.URL("postgres"), Namespaces: []string{"default"},
//	})
//
// Temporal.Kill or Stop ends it, and the same options start it again with what its
// databases hold; TemporalDatabases names these, for a backup.
//
// It refuses to touch a cluster or a server that it did not start, and it knows
// nothing of Earshot's schema, namespaces or search attributes. It is not for
// production.
package devstack

// Report tells a person what happens now, one line a call, without a newline.
// It may be called from more than one goroutine. A nil Report is allowed
// wherever one is asked for.
type Report func(format string, args ...any)

// say calls r unless it is nil.
func (r Report) say(format string, args ...any) {
	if r != nil {
		r(format, args...)
	}
}
