// Package ent is where the data model lives: entities in schema, the generated
// client in db, the SQL that builds the database in migrations.
package ent

//go:generate go run ./generate
