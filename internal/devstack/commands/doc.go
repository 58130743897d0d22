// Package commands runs the development stack of one directory: the private Postgres, Temporal's dev
// server, and the service with both. `earshot up`, `earshot down` and `earshot reset` are its users.
package commands
