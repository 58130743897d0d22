package postgres_test

import (
	"context"
	"testing"

	"entgo.io/ent/dialect/sql"
	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/ent/db/board"
	"earshot/ent/db/migrate"
	"earshot/internal/postgres"
	"earshot/internal/publicid"
	"earshot/internal/testkit"
	"earshot/internal/testkit/fixture"
)

// inAndOutsideATransaction runs a test with the store's client and with a
// transaction's.
func inAndOutsideATransaction(t *testing.T, s *postgres.DB, test func(t *testing.T, c *db.Client)) {
	t.Helper()
	t.Run("outside a transaction", func(t *testing.T) { test(t, s.Client()) })
	t.Run("in a transaction", func(t *testing.T) {
		require.NoError(t, s.InTx(t.Context(), func(tx *db.Tx) error {
			test(t, tx.Client())
			return nil
		}))
	})
}

// The tests that walk through the entities would pass if the walk found none.
func TestTheWalkReachesEveryTableOfAnOrganization(t *testing.T) {
	t.Parallel()
	s := testkit.SharedStore(t)
	r := fixture.Seed(t, s)
	walked := entities(s.Client())
	require.Len(t, walked, len(migrate.Tables)-1)
	updatable := 0
	for _, e := range walked {
		n, err := e.count(r.Ctx)
		require.NoError(t, err)
		require.Positive(t, n, "the seed has no row of %s", e.name)
		if e.everything(e.anyID(r.Ctx, t))["update"] != nil {
			updatable++
		}
	}
	// Seven entities never change: attempts, events, links, the tags of posts, the audit trail, the
	// records of data-subject requests and the addresses of backfills.
	require.Equal(t, len(walked)-7, updatable)
}

func TestNothingIsReadOrChangedWithoutAnOrganization(t *testing.T) {
	t.Parallel()
	s := testkit.SharedStore(t)
	r := fixture.Seed(t, s)
	inAndOutsideATransaction(t, s, func(t *testing.T, c *db.Client) {
		for _, e := range entities(c) {
			for way, touch := range e.everything(e.anyID(r.Ctx, t)) {
				_, err := touch(t.Context())
				require.ErrorIs(t, err, postgres.ErrNoOrganization, "%s: %s", e.name, way)
			}
			err := into(t, e.build("Create"), r.Organization).(executor).Exec(t.Context())
			require.ErrorIs(t, err, postgres.ErrNoOrganization, "%s: create", e.name)
		}
	})
}

func TestAnotherOrganizationsRowsAreOutOfReach(t *testing.T) {
	t.Parallel()
	s := testkit.SharedStore(t)
	theirs := fixture.Seed(t, s)
	outsider, _ := fixture.NewOrganization(t, s)
	inAndOutsideATransaction(t, s, func(t *testing.T, c *db.Client) {
		for _, e := range entities(c) {
			before, err := e.count(theirs.Ctx)
			require.NoError(t, err)
			for way, touch := range e.everything(e.anyID(theirs.Ctx, t)) {
				reached, err := touch(outsider)
				if err != nil {
					require.True(t, db.IsNotFound(err), "%s: %s: %v", e.name, way, err)
				}
				require.Zero(t, reached, "%s: %s", e.name, way)
			}
			after, err := e.count(theirs.Ctx)
			require.NoError(t, err)
			require.Equal(t, before, after, e.name)
		}
	})
}

func TestEveryFormOfAQueryStaysInTheOrganization(t *testing.T) {
	t.Parallel()
	s := testkit.SharedStore(t)
	fixture.Seed(t, s)
	ours := fixture.Seed(t, s)
	ctx, c := ours.Ctx, s.Client()

	all, err := c.Board.Query().All(ctx)
	require.NoError(t, err)
	require.Len(t, all, 1)
	only, err := c.Board.Query().Only(ctx)
	require.NoError(t, err)
	require.Equal(t, ours.Board, only.ID)
	first, err := c.Board.Query().Order(board.ByID()).First(ctx) // theirs is older
	require.NoError(t, err)
	require.Equal(t, ours.Board, first.ID)
	names, err := c.Board.Query().Select(board.FieldSlug).Strings(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{"ideas"}, names)
	totals, err := c.Board.Query().Aggregate(db.Count()).Ints(ctx)
	require.NoError(t, err)
	require.Equal(t, []int{1}, totals)
	groups, err := c.Board.Query().GroupBy(board.FieldOrganizationID).Strings(ctx)
	require.NoError(t, err)
	require.Equal(t, []string{ours.Organization.UUID().String()}, groups)
	locked, err := c.Board.Query().ForUpdate().All(ctx)
	require.NoError(t, err)
	require.Len(t, locked, 1)
}

func TestAnEdgeDoesNotLeadOutOfTheOrganization(t *testing.T) {
	t.Parallel()
	s := testkit.SharedStore(t)
	theirs := fixture.Seed(t, s)
	outsider, _ := fixture.NewOrganization(t, s)
	post, err := s.Client().Post.Get(theirs.Ctx, theirs.Post)
	require.NoError(t, err)

	_, err = post.QueryBoard().Only(outsider)
	require.True(t, db.IsNotFound(err))
	_, err = post.Update().SetTitle("mine").Save(outsider)
	require.True(t, db.IsNotFound(err))
	require.True(t, db.IsNotFound(s.Client().Post.DeleteOne(post).Exec(outsider)))
}

func TestACreationIsStampedWithTheOrganization(t *testing.T) {
	t.Parallel()
	s := testkit.Store(t)
	r := fixture.Seed(t, s) // The seed never names the organization of its rows.
	for _, table := range migrate.Tables {
		if table == migrate.OrganizationsTable {
			continue
		}
		var own, others int
		require.NoError(t, s.Across("a test").QueryRow(t.Context(),
			"SELECT count(*) FILTER (WHERE organization_id = $1), count(*) FILTER (WHERE organization_id <> $1) FROM "+table.Name,
			r.Organization.UUID().String()).Scan(&own, &others))
		require.Positive(t, own, table.Name)
		require.Zero(t, others, table.Name)
	}
}

func TestACreationInAnotherOrganizationIsRefused(t *testing.T) {
	t.Parallel()
	s := testkit.SharedStore(t)
	_, theirs := fixture.NewOrganization(t, s)
	outsider, _ := fixture.NewOrganization(t, s)
	inAndOutsideATransaction(t, s, func(t *testing.T, c *db.Client) {
		for _, e := range entities(c) {
			err := into(t, e.build("Create"), theirs).(executor).Exec(outsider)
			require.ErrorIs(t, err, postgres.ErrForeignOrganization, e.name)
			err = e.build("CreateBulk", into(t, e.build("Create"), theirs)).(executor).Exec(outsider)
			require.ErrorIs(t, err, postgres.ErrForeignOrganization, "%s in bulk", e.name)
		}
		err := c.Board.Create().SetOrganizationID(theirs).SetName("x").SetSlug("x").OnConflict(sql.DoNothing()).Exec(outsider)
		require.ErrorIs(t, err, postgres.ErrForeignOrganization, "upsert")
	})
}

func TestACreationThatNamesItsOwnOrganizationIsAllowed(t *testing.T) {
	t.Parallel()
	s := testkit.SharedStore(t)
	ctx, own := fixture.NewOrganization(t, s)
	made, err := s.Client().Board.Create().SetOrganizationID(own).SetName("x").SetSlug("x").Save(ctx)
	require.NoError(t, err)
	require.Equal(t, own, made.OrganizationID)
}

func TestAnOrganizationSeesAndChangesOnlyItself(t *testing.T) {
	t.Parallel()
	s := testkit.SharedStore(t)
	_, theirs := fixture.NewOrganization(t, s)
	ctx, own := fixture.NewOrganization(t, s)
	c := s.Client().Organization

	only, err := c.Query().Only(ctx)
	require.NoError(t, err)
	require.Equal(t, own, only.ID)
	require.True(t, db.IsNotFound(c.UpdateOneID(theirs).SetName("mine").Exec(ctx)))
	require.True(t, db.IsNotFound(c.DeleteOneID(theirs).Exec(ctx)))
	changed, err := c.Update().SetName("Ours").Save(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, changed)
	require.ErrorIs(t, c.Create().SetName("Third").Exec(ctx), postgres.ErrForeignOrganization)
	require.ErrorIs(t, c.Create().SetName("Third").Exec(t.Context()), postgres.ErrNoOrganization)
}

func TestTheSystemReachesAllOrganizations(t *testing.T) {
	t.Parallel()
	s := testkit.Store(t)
	for range 2 {
		fixture.Seed(t, s)
	}
	inAndOutsideATransaction(t, s, func(t *testing.T, c *db.Client) {
		n, err := c.Board.Query().Count(fixture.AllRows(t, s))
		require.NoError(t, err)
		require.Equal(t, 2, n)
		n, err = c.Board.Update().SetDescription("both").Save(fixture.AllRows(t, s))
		require.NoError(t, err)
		require.Equal(t, 2, n)
	})
}

func TestTheInnerLimitCounts(t *testing.T) {
	t.Parallel()
	s := testkit.Store(t)
	r := fixture.Seed(t, s)
	outsider, own := fixture.NewOrganization(t, s)
	for _, ctx := range []context.Context{
		postgres.WithOrganization(fixture.AllRows(t, s), own),
		postgres.WithOrganization(r.Ctx, own),
	} {
		n, err := s.Client().Board.Query().Count(ctx)
		require.NoError(t, err)
		require.Zero(t, n)
	}
	n, err := s.Client().Board.Query().Count(s.Across("a test").Context(outsider))
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

func TestTheOrganizationOfARowIsFoundByItsID(t *testing.T) {
	t.Parallel()
	s := testkit.SharedStore(t)
	r := fixture.Seed(t, s)
	ctx, _ := fixture.NewOrganization(t, s)
	found, err := postgres.InOrganizationOf(ctx, s, r.Webhook)
	require.NoError(t, err)
	require.Equal(t, r.Webhook, s.Client().Webhook.Query().OnlyX(found).ID)
	for kind, look := range map[string]func() (context.Context, error){
		"an API key": func() (context.Context, error) { return postgres.InOrganizationOf(ctx, s, publicid.NewAPIKey()) },
		"a changelog entry": func() (context.Context, error) {
			return postgres.InOrganizationOf(ctx, s, publicid.NewChangelogEntry())
		},
		"a backfill": func() (context.Context, error) {
			return postgres.InOrganizationOf(ctx, s, publicid.NewContactBackfill())
		},
		"a delivery":     func() (context.Context, error) { return postgres.InOrganizationOf(ctx, s, publicid.NewDelivery()) },
		"an interaction": func() (context.Context, error) { return postgres.InOrganizationOf(ctx, s, publicid.NewInteraction()) },
		"a recovery":     func() (context.Context, error) { return postgres.InOrganizationOf(ctx, s, publicid.NewRecovery()) },
		"a data-subject request": func() (context.Context, error) {
			return postgres.InOrganizationOf(ctx, s, publicid.NewSubjectRequest())
		},
		"a webhook": func() (context.Context, error) { return postgres.InOrganizationOf(ctx, s, publicid.NewWebhook()) },
	} {
		t.Run(kind+" that doesn't exist", func(t *testing.T) {
			t.Parallel()
			_, err := look()
			require.True(t, db.IsNotFound(err), "%v", err)
		})
	}
}
