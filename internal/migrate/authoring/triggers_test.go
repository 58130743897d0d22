package authoring_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/internal/migrate/authoring"
	"earshot/internal/testkit"
)

func TestEveryTriggerHasAReasonAndEveryReasonATrigger(t *testing.T) {
	t.Parallel()
	for statement, problem := range map[string]string{
		`CREATE FUNCTION without_reason() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
			CREATE TRIGGER is_new AFTER DELETE ON tags FOR EACH ROW EXECUTE FUNCTION without_reason()`: "the trigger is_new on tags has no reason",
		`DROP TRIGGER count_event ON events`: "no trigger calls count_event",
	} {
		url := testkit.Database(t)
		c, err := pgx.Connect(t.Context(), url)
		require.NoError(t, err)
		_, err = c.Exec(t.Context(), statement)
		require.NoError(t, err)
		require.NoError(t, c.Close(t.Context()))
		_, err = authoring.Triggers(t.Context(), url)
		require.ErrorContains(t, err, problem)
	}
}
