package commands

import "earshot/internal/devstack/statedir"

// The files of a stack in its directory, beside those that clients read.

func secretsEnv(d statedir.Dir) string  { return d.File("secrets.env") }
func serviceLog(d statedir.Dir) string  { return d.File("earshot.log") }
func upLog(d statedir.Dir) string       { return d.File("up.log") } // output of a detached `up`
func postgresDir(d statedir.Dir) string { return d.File("postgres") }
func temporalDir(d statedir.Dir) string { return d.File("temporal") }
func mailDir(d statedir.Dir) string     { return d.File("mail") } // e-mails that weren't sent
