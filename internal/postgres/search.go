package postgres

import (
	"context"

	"entgo.io/ent/dialect/sql"
	"github.com/jackc/pgx/v5"
)

// freshPlans is the driver of Lists. Postgres plans each of its queries for the arguments.
type freshPlans struct{ *sql.Driver }

// Query puts the mode before the arguments, where pgx looks for it.
func (p freshPlans) Query(ctx context.Context, query string, args, v any) error {
	if given, ok := args.([]any); ok {
		args = append([]any{pgx.QueryExecModeCacheDescribe}, given...)
	}
	return p.Driver.Query(ctx, query, args, v)
}
