// Package devstack starts and stops the two servers that Earshot needs on a developer's machine and
// in tests: a private Postgres cluster and a Temporal dev server. It needs no preparation on
// Debian, Ubuntu or macOS.
//
// It manages the processes, their directories, their ports and the search for their binaries. A
// server belongs to the program that started it. A Ctrl-C in the terminal doesn't reach the server,
// so that the program can stop everything in order. If the program is killed, its servers end:
// immediately on Linux, elsewhere at the next start in the same directory.
//
// StartTemporalServer starts the production program, temporal-server, in place of the dev server.
// It keeps its two databases in a Postgres. Each start in a directory uses the same ports.
//
//	programs, err := devstack.TemporalServerPrograms(ctx, root, report)
//	postgres, err := devstack.StartPostgres(ctx, devstack.PostgresOptions{Dir: …, Durable: true})
//	temporal, err := devstack.StartTemporalServer(ctx, devstack.TemporalServerOptions{
//		Dir: …, Programs: programs, Database: postgres.URL("postgres"), Namespaces: []string{"default"},
//	})
//
// Temporal.Kill or Temporal.Stop ends it. The same options start it again with the data in its
// databases. TemporalDatabases lists these databases, for a backup.
//
// The package touches no cluster or server that it didn't start. It is independent of Earshot's
// schema, namespaces and search attributes. It is not for production.
package devstack

// Report receives one line of progress per call, without a newline. Several goroutines may call it.
// A nil Report is always allowed.
type Report func(format string, args ...any)

// say calls r unless it is nil.
func (r Report) say(format string, args ...any) {
	if r != nil {
		r(format, args...)
	}
}
