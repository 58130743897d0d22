package architecture_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// acrossOrganizations are the functions that may touch rows of several organizations, by the method that
// they call. postgres.DB.Across says the reason. InOrganizationOf and WithOrganization choose the
// organization, which must never come from a request. The other methods run SQL past the handle that binds
// the organization. The lists may only shrink: a new function needs a very good reason.
var acrossOrganizations = map[string][]string{
	"Across": {
		"internal/access.Service.CreateOrganization",
		"internal/access.Service.FindOrganization",
		"internal/access.Service.Workspace",
		"internal/access.keysWithOwners",
		"internal/access.noteKeyUses",
		"internal/backfill.Service.overdue",
		"internal/change.Overdue",
		"internal/delivery.Abandoned",
		"internal/delivery.End",
		"internal/delivery.FindOverdue",
		"internal/delivery.OwnersOf",
		"internal/delivery.PayloadSizes",
		"internal/delivery.PutOffAll",
		"internal/delivery.Record",
		"internal/delivery.RemoveThrottles",
		"internal/delivery.Revive",
		"internal/delivery.claim",
		"internal/delivery.readOutbox",
		"internal/delivery.takeWebhookTokens",
		"internal/devstack/commands.firstOwner",
		"internal/feedback.Service.overdueEntries",
		"internal/migrate.NumberChangesAnew",
		"internal/migrate.TableSizes",
		"internal/migrate.appliedMigrations",
		"internal/migrate.migrating.doing",
		"internal/migrate.migrating.waitsFor",
		"internal/page.ReadChanges",
		"internal/privacy.Service.overdue",
		"internal/publicactions.ResealSubmissions",
		"internal/publicactions.Service.overdue",
		"internal/ratelimit.RemoveFullBuckets",
		"internal/ratelimit.TakeFrom",
		"internal/ratelimit.takeTokens",
		"internal/retention.RemoveDeleted",
		"internal/retention.RemoveExpired",
		"internal/retention.RemoveIdempotencyRecords",
		"internal/retention.RemoveTombstones",
		"internal/retention.removePage",
		"internal/subscribers.Service.overdue",
		"internal/subscribers.isSuppressed",
		"internal/subscribers.suppress",
		"internal/subscribers.suppressed",
		"internal/webhooks.ForgetFormerSecrets",
		"internal/webhooks.KeyUses",
		"internal/webhooks.Service.overdueRecoveries",
		"internal/webhooks.Service.overdueStreaks",
		"internal/webhooks.countStaleSecrets",
		"internal/webhooks.feeds",
		"internal/webhooks.reseal",
		"internal/webhooks.staleSecrets",
		"internal/widget.Service.ResealSecrets",
	},
	"ExecContext": {
		"internal/migrate.migrating.SessionLock",
		"internal/migrate.migrating.SessionUnlock",
		"internal/migrate.migrating.dropUnfinished",
		"internal/migrate.migrating.limit",
		"internal/postgres.ExecTx",
		"internal/postgres.look",
		"internal/postgres.riddenTx.ExecContext",
		"internal/postgres.riddenTx.Rollback",
		"internal/subscribers.unsuppress",
	},
	"QueryContext": {
		"internal/migrate.migrating.limit",
		"internal/postgres.riddenTx.QueryContext",
	},
	"InOrganizationOf": {
		"cmd/earshot.newKeyRevokeCommand",
		"internal/backfill.Service.Backfill",
		"internal/backfill.Service.Cancel",
		"internal/feedback.Service.PublishEntry",
		"internal/privacy.Service.Continue",
		"internal/publicactions.Service.Remove",
		"internal/publicactions.Service.followed",
		"internal/webhooks.Service.CancelRecovery",
		"internal/webhooks.Service.DisabledNotice",
		"internal/webhooks.Service.ReplayAs",
		"internal/webhooks.Service.followedWebhook",
		"internal/webhooks.Service.onRecovery",
	},
	"InTxWithRides": {
		"internal/change.inTxWithRows",
		"internal/postgres.DB.InTx",
	},
	"WithOrganization": {
		"cmd/earshot.newKeyCreateCommand",
		"cmd/earshot.newKeyListCommand",
		"cmd/earshot.scopedTo",
		"internal/backfill.Service.Left",
		"internal/change.NewBatch",
		"internal/change.Runner.RunForService",
		"internal/change.WithCaller",
		"internal/devstack/commands.keyMaker.provide",
		"internal/subscribers.Service.Continue",
		"internal/subscribers.Service.Letter",
		"internal/subscribers.Service.Remove",
		"internal/subscribers.Service.Take",
		"internal/subscribers.Service.due",
	},
	"StdPool": {
		"internal/migrate.UpFrom",
		"internal/migrate/authoring.diff",
	},
}

func TestOnlyTheListedFunctionsReachRowsOfSeveralOrganizations(t *testing.T) {
	t.Parallel()
	found := map[string]map[string]bool{}
	for method := range acrossOrganizations {
		found[method] = map[string]bool{}
	}
	for _, p := range all(t) {
		for _, outside := range []string{"ent/db", "internal/testkit", "bench", "e2e"} {
			if covers(outside+"/...", p.name()) {
				p.GoFiles = nil
			}
		}
		for _, name := range p.GoFiles {
			path := filepath.Join(p.Dir, name)
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			file, err := parser.ParseFile(token.NewFileSet(), path, text, 0)
			require.NoError(t, err)
			for _, d := range file.Decls {
				by := "a variable in " + name
				if function, ok := d.(*ast.FuncDecl); ok {
					by = nameOf(function)
				}
				ast.Inspect(d, func(n ast.Node) bool {
					if s, ok := n.(*ast.SelectorExpr); ok && found[s.Sel.Name] != nil {
						found[s.Sel.Name][p.name()+"."+by] = true
					}
					return true
				})
			}
		}
	}
	for method, functions := range found {
		var names []string
		for name := range functions {
			names = append(names, name)
		}
		require.ElementsMatch(t, acrossOrganizations[method], names, method)
	}
}

// nameOf returns the name of a function, with its receiver's type.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	receiver := f.Recv.List[0].Type
	if pointer, ok := receiver.(*ast.StarExpr); ok {
		receiver = pointer.X
	}
	if generic, ok := receiver.(*ast.IndexExpr); ok {
		receiver = generic.X
	}
	var name strings.Builder
	if id, ok := receiver.(*ast.Ident); ok {
		name.WriteString(id.Name + ".")
	}
	return name.String() + f.Name.Name
}
