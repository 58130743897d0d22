package mcp_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/access"
	"earshot/internal/testkit/apptest"
)

func TestTheReadOnlyBillingStateAllowsDisablingAndRevoking(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := app.Tenant(t)
	a := newAgent(t, app, n.Key)
	hook := a.make(t, "manage_webhook", object{
		"action": "create", "url": "https://hooks.example.com/in", "events": []string{"post.created"},
	})["id"]
	leaked := a.make(t, "manage_webhook", object{"action": "create_key", "name": "Leaked", "scope": "read"})["id"]
	app.Store.Client().Organization.Update().SetBillingState("read_only").ExecX(n.Context(t.Context()))
	// The service has not cached the billing state for a new key.
	a = newAgent(t, app, n.NewKey(t, access.NewAPIKey{Name: "new", Scope: "read:write"}))

	require.Equal(t, "ERR_FORBIDDEN", a.call(t, "manage_webhook", object{
		"action": "update", "webhook_id": hook, "events": []string{"vote.created"},
	}).code())
	disabled := a.make(t, "manage_webhook", object{"action": "update", "webhook_id": hook, "enabled": false})
	require.Equal(t, false, disabled["enabled"])
	require.Equal(t, leaked, a.make(t, "manage_webhook", object{"action": "revoke_key", "key_id": leaked})["id"])
}

func TestACommentIsReadByTheToolThatReads(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := app.Tenant(t)
	a, reader := newAgent(t, app, n.Key), newAgent(t, app, n.ReadKey)
	board := a.make(t, "manage_board", object{"action": "create_board", "name": "Ideas"})["id"]
	post := a.make(t, "manage_post", object{"action": "create", "board_id": board, "title": "Dark mode"})["id"]
	made := a.make(t, "manage_comment", object{"action": "create", "post_id": post, "body": object{"text": "Me too."}})
	arguments := object{"action": "comment", "comment_id": made["id"]}
	require.Equal(t, made, reader.make(t, "get_post", arguments))
	a.make(t, "manage_comment", object{"action": "delete", "comment_id": made["id"]})
	require.Nil(t, reader.make(t, "get_post", arguments)["body"])
}

func TestAContactIsDeletedOnlyByACallThatNamesTheAction(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := app.Tenant(t)
	a := newAgent(t, app, n.Key)
	contact := object{"contact_id": n.ID(t, "/v1/contacts", object{"name": "Dana"})}
	unchanged := n.Watch(t)
	got := a.call(t, "delete_contact", contact)
	require.Equal(t, "ERR_VALIDATION", got.code(), got.raw)
	require.Equal(t, []string{"action"}, got.fields())
	require.Contains(t, got.raw, "the actions are delete, erase")
	unchanged(t)
}

func TestAPersonsDataIsExportedByAToolThatDestroysNothing(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := app.Tenant(t)
	a := newAgent(t, app, n.Key)
	created := a.make(t, "create_contact", object{"name": "Dana"})
	receipt := a.make(t, "create_contact", object{"action": "export", "contact_id": created["id"]})
	require.Equal(t, "export", receipt["kind"])
	n.Finished(t, receipt["id"].(string))
	records := a.call(t, "get_contact", object{"action": "records", "subject_request_id": receipt["id"]})
	require.Contains(t, records.raw, "Dana")
	require.Equal(t, "ERR_VALIDATION", a.call(t, "delete_contact", object{"action": "export", "contact_id": created["id"]}).code())
	require.False(t, *a.everyTool(t)["create_contact"].Annotations.DestructiveHint)
}

func TestIdentifyLeavesOutTheMetadataThatDoesNotFitByItsToolToo(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	a := newAgent(t, app, app.Tenant(t).Key)
	keys := object{"camelCase": nil}
	for i := range 99 {
		keys[fmt.Sprint("k", i)] = i
	}
	identify := func(metadata object) object {
		return a.make(t, "identify_contact", object{"external_user_id": "u-1", "metadata": metadata})["metadata"].(object)
	}
	require.Len(t, identify(keys), 100)
	filled := identify(object{"camelCase": 1, "k0": "other", "more": 2})
	require.Len(t, filled, 100)
	require.Equal(t, []any{json.Number("1"), json.Number("0"), nil}, []any{filled["camelCase"], filled["k0"], filled["more"]})
}

func TestAContactsVotesAndCommentsAreCountedByItsToolToo(t *testing.T) {
	t.Parallel()
	app := apptest.Start(t, apptest.Options{})
	n := app.Tenant(t)
	a := newAgent(t, app, n.Key)
	contact := a.make(t, "create_contact", object{"email": n.Owner.Email})["id"]
	board := a.make(t, "manage_board", object{"action": "create_board", "name": "Ideas"})["id"]
	post := a.make(t, "manage_post", object{"action": "create", "board_id": board, "title": "Dark mode"})["id"]
	a.make(t, "vote_post", object{"action": "cast", "post_id": post})
	a.make(t, "manage_comment", object{"action": "create", "post_id": post, "body": object{"text": "Me too."}})
	read := a.make(t, "get_contact", object{"contact_id": contact})
	require.Equal(t, []any{json.Number("1"), json.Number("1")}, []any{read["vote_count"], read["comment_count"]})
}
