package privacy_test

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/apptest"
	"earshot/worker"
)

func TestMain(m *testing.M) { apptest.Main(m, apptest.WithWorker(worker.Module)) }

type object = map[string]any

// Texts that only the person of these tests has.
const (
	address  = "noor.azimi@customer.example"
	fullName = "Noor Azimi"
	// The secret is in the contact's metadata.
	secret = "violet-umbrella"
)

// tenant is an organization with two contacts that have the same activity.
type tenant struct {
	*apptest.Tenant
	board, post, other string
	// noor is the subject of the requests. bo is another contact.
	noor, bo string
}

func newTenant(t *testing.T, app *apptest.App) *tenant {
	t.Helper()
	n := &tenant{Tenant: app.Tenant(t)}
	n.ID(t, "/v1/webhooks", object{"url": "https://hooks.example.com/in", "events": everyEvent})
	n.fill(t)
	return n
}

var everyEvent = []string{"post.created", "post.status_changed", "vote.created", "comment.created", "contact.created", "contact.updated", "contact.deleted"}

// fill creates posts, votes and comments of both persons. Noor votes as a contact. Her address also
// has a vote of the public flow and a comment on another post.
func (n *tenant) fill(t *testing.T) {
	t.Helper()
	n.board = n.ID(t, "/v1/boards", object{"name": "Ideas"})
	n.noor = n.ID(t, "/v1/contacts/identify", object{
		"externalUserId": "u-noor", "email": address, "name": fullName, "plan": "team", "mrrCents": 4900, "currency": "EUR",
		"metadata": object{"likes": secret},
	})
	n.Make(t, http.MethodPatch, "/v1/contacts/"+n.noor, object{"plan": "pro"})
	n.bo = n.ID(t, "/v1/contacts/identify", object{"externalUserId": "u-bo", "email": "bo@customer.example", "name": "Bo"})
	n.post = n.ID(t, "/v1/boards/"+n.board+"/posts", object{"title": "Dark mode", "contactId": n.noor, "body": object{"text": "For the night."}})
	n.other = n.ID(t, "/v1/boards/"+n.board+"/posts", object{"title": "Light mode", "contactId": n.bo, "body": object{"text": "For the day."}})
	n.Make(t, http.MethodPatch, "/v1/posts/"+n.post, object{"status": "planned"})
	for _, contact := range []string{n.noor, n.bo} {
		for _, post := range []string{n.post, n.other} {
			n.Make(t, http.MethodPost, "/v1/posts/"+post+"/votes", object{"contactId": contact})
			n.Make(t, http.MethodPost, "/v1/posts/"+post+"/comments", object{"contactId": contact, "body": object{"text": "Please, by " + contact}})
		}
	}
}

// counts returns the counters of the posts, which no request may change.
func (n *tenant) counts(t *testing.T) string {
	t.Helper()
	text := ""
	for _, post := range []string{n.post, n.other} {
		p := n.Make(t, http.MethodGet, "/v1/posts/"+post, nil)
		text += fmt.Sprint(p["voteCount"], " ", p["commentCount"], "; ")
	}
	return text
}

// export starts an export, waits for its end and returns the receipt's id.
func (n *tenant) export(t *testing.T, contact string) string {
	t.Helper()
	return n.Finished(t, n.ID(t, "/v1/contacts/"+contact+"/export", nil))
}

// records reads the records of an export page by page and groups them by kind.
func (n *tenant) records(t *testing.T, request string) map[string][]object {
	t.Helper()
	all, path := map[string][]object{}, "/v1/subject-requests/"+request+"/records?limit=3"
	for cursor := ""; ; {
		a := n.Do(t, http.MethodGet, path+cursor, nil)
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Raw)
		for _, r := range a.Body["data"].([]any) {
			kind := r.(object)["kind"].(string)
			all[kind] = append(all[kind], r.(object)["record"].(object))
		}
		next, more := a.Body["nextCursor"].(string)
		if !more {
			return all
		}
		cursor = "&cursor=" + next
	}
}

// query runs SQL and returns the single column of its rows.
func query[T any](t *testing.T, n *tenant, sql string, args ...any) []T {
	t.Helper()
	rows, err := n.App.Pool.Query(t.Context(), sql, args...)
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[T])
	require.NoError(t, err)
	return all
}

// traces returns the tables that contain one of the texts, in rows of the organization or in tables
// without organizations. It searches columns of every type, including the bytes of binary columns.
func (n *tenant) traces(t *testing.T, texts ...string) []string {
	t.Helper()
	return n.search(t, "organization_id = '"+n.Organization.ID.UUID().String()+"'", texts...)
}

// tracesAnywhere is traces in the whole database.
func (n *tenant) tracesAnywhere(t *testing.T, texts ...string) []string {
	t.Helper()
	return n.search(t, "true", texts...)
}

func (n *tenant) search(t *testing.T, condition string, texts ...string) []string {
	t.Helper()
	var found []string
	for _, table := range query[string](t, n, `SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace`) {
		where := "true"
		if of := query[int](t, n, "SELECT 1 FROM pg_attribute WHERE attrelid = $1::regclass AND attname = 'organization_id'", table); len(of) > 0 {
			where = condition
		}
		for _, row := range query[string](t, n, fmt.Sprintf(`SELECT lower(x::text) FROM %q x WHERE %s`, table, where)) {
			for _, text := range texts {
				if lower := strings.ToLower(text); strings.Contains(row, lower) || strings.Contains(row, hex.EncodeToString([]byte(text))) {
					found = append(found, table+": "+text)
				}
			}
		}
	}
	return found
}
