package change

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"earshot/internal/jobs"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
)

// Overdue reads a page of overdue rows of all organizations for a sweep. The query returns the id, the
// organization and the time of each row. Its parameters are the grace in seconds, the time and the id of
// the place behind which the page begins, and the number of rows.
func Overdue[ID interface{ UUID() uuid.UUID }](
	ctx context.Context, rows postgres.Across, query string, grace time.Duration, after jobs.Overdue, limit int,
	run func(id ID, of publicid.Organization) jobs.Request,
) ([]jobs.Overdue, error) {
	return postgres.CollectAcross(ctx, rows, query, func(row pgx.CollectableRow) (o jobs.Overdue, err error) {
		var (
			id ID
			of publicid.Organization
		)
		err = row.Scan(&id, &of, &o.At)
		o.Request, o.Row = run(id, of), id.UUID()
		return o, err
	}, grace.Seconds(), after.At, after.Row.String(), limit)
}
