// Package ent contains the data model: the entities in schema, the generated client in db, and the
// SQL that builds the database in migrations.
package ent

//go:generate go run ./generate
