package feedback_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"earshot/internal/testkit/apptest"
)

func TestTheRevenueOfAPost(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"sorts a board, with the posts without any last":                   revenueSorts,
		"goes with filters, a search and pages":                            revenueFiltered,
		"is told in the list by it, and nowhere else":                      revenueTold,
		"comes and goes with the votes of contacts":                        revenueOfVotes,
		"counts contacts only, no members or guests with the same address": revenueOfContactsOnly,
		"follows the revenue of a contact":                                 revenueOfContact,
		"moves in a merge, with one vote a person":                         revenueMerged,
		"goes with a contact that is deleted":                              revenueOfDeletedContact,
		"is read of posts whose text is loaded apart":                      revenueOfLargePosts,
		"wants a currency, which no other order takes":                     revenueWithoutCurrency,
		"doesn't keep a board with deleted posts from leaving":             revenueOfDeletedBoard,
	})
}

// paying sets a contact's revenue: "4900 EUR", for example, or "nothing".
func (n *tenant) paying(t *testing.T, id, revenue string) {
	t.Helper()
	body := object{"mrrCents": nil, "currency": nil}
	var cents int
	var currency string
	if _, err := fmt.Sscan(revenue, &cents, &currency); err == nil {
		body = object{"mrrCents": cents, "currency": currency}
	}
	n.Patch(t, "/v1/contacts/"+n.Identify(t, object{"externalUserId": id})["id"].(string), body)
}

// revenues returns the revenue of a board's posts, as "title:cents". It leaves out posts without
// revenue.
func (n *tenant) revenues(t *testing.T, board, currency string) string {
	t.Helper()
	var all []string
	for _, p := range n.Do(t, http.MethodGet, board+"/posts?limit=100&sort=revenue&currency="+currency, nil).Body["data"].([]any) {
		revenue := p.(object)["revenue"].(object)
		require.Equal(t, currency, revenue["currency"])
		if cents := revenue["mrrCents"].(json.Number); cents != "0" {
			all = append(all, fmt.Sprint(p.(object)["title"], ":", cents))
		}
	}
	n.revenueIsExact(t)
	return strings.Join(all, " ")
}

// revenueIsExact computes the revenues anew and compares them with the stored ones.
func (n *tenant) revenueIsExact(t *testing.T) {
	t.Helper()
	for what, query := range map[string]string{
		"a vote has another copy than its contact": `SELECT v.id::text FROM votes v LEFT JOIN contacts c ON c.id = v.contact_id
			WHERE v.organization_id = $1 AND (v.mrr_cents, v.currency) IS DISTINCT FROM (c.mrr_cents, c.currency)`,
		"a post is counted wrongly": `SELECT coalesce(r.post_id, v.post_id)::text || ' ' || coalesce(r.mrr_cents, 0) || ' for ' || coalesce(v.sum, 0)
			FROM (SELECT * FROM post_revenues WHERE organization_id = $1) r FULL JOIN (
				SELECT v.post_id, c.currency, sum(c.mrr_cents) FROM votes v JOIN contacts c ON c.id = v.contact_id
				WHERE v.organization_id = $1 GROUP BY 1, 2 HAVING sum(c.mrr_cents) > 0
			) v ON v.post_id = r.post_id AND v.currency = r.currency WHERE coalesce(r.mrr_cents, 0) <> coalesce(v.sum, 0)`,
	} {
		rows, err := n.App.Pool.Query(t.Context(), query, n.Owner.OrganizationID)
		require.NoError(t, err)
		wrong, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		require.Empty(t, wrong, what)
	}
}

// market makes a board with the posts 0 to 5 and votes of contacts with different revenues.
func (n *tenant) market(t *testing.T) (board string, posts []string) {
	t.Helper()
	board, posts = n.numbered(t, 6)
	for id, revenue := range map[string]string{"a": "100 EUR", "b": "250 EUR", "c": "0 EUR", "d": "900 USD", "e": "nothing"} {
		n.paying(t, id, revenue)
	}
	for post, voters := range []string{"a", "ab", "c", "de", "", "b"} {
		for _, voter := range voters {
			n.voteOf(t, posts[post], object{"externalUserId": string(voter)}, http.StatusCreated)
		}
	}
	return board, posts
}

func revenueSorts(t *testing.T, n *tenant) {
	board, _ := n.market(t)
	require.Equal(t, "1:350 5:250 0:100", n.revenues(t, board, "EUR"))
	require.Equal(t, "3:900", n.revenues(t, board, "USD"))
	require.Empty(t, n.revenues(t, board, "CHF"))
	for currency, want := range map[string]string{"EUR": "150432", "USD": "354210", "CHF": "543210"} {
		for limit := 1; limit <= 7; limit++ {
			got := n.paged(t, board+"/posts?sort=revenue&currency="+currency, limit, "title")
			require.Equal(t, want, strings.Join(got, ""), "%s by %d", currency, limit)
		}
	}
}

func revenueFiltered(t *testing.T, n *tenant) {
	board, posts := n.market(t)
	for _, i := range []int{0, 2, 3, 5} {
		n.Patch(t, posts[i], object{"status": "planned"})
	}
	tag := n.ID(t, board+"/tags", object{"name": "Mobile"})
	for _, i := range []int{1, 4} {
		n.Patch(t, posts[i], object{"tagIds": []any{tag}})
	}
	for query, want := range map[string]string{
		"status=planned": "5032", "tagIds=" + tag: "14", "q=word": "150432", "q=word&status=planned": "5032", "q=nothing": "",
	} {
		for limit := 1; limit <= 7; limit++ {
			got := n.paged(t, board+"/posts?sort=revenue&currency=EUR&"+query, limit, "title")
			require.Equal(t, want, strings.Join(got, ""), "%s by %d", query, limit)
		}
	}
}

func revenueTold(t *testing.T, n *tenant) {
	board, posts := n.market(t)
	for _, path := range []string{"?sort=votes", "?sort=newest", "", "?q=word"} {
		for _, p := range n.Do(t, http.MethodGet, board+"/posts"+path, nil).Body["data"].([]any) {
			require.NotContains(t, p, "revenue", path)
		}
	}
	require.NotContains(t, n.Get(t, posts[1]), "revenue")
	listed := n.Do(t, http.MethodGet, board+"/posts?sort=revenue&currency=EUR&limit=1", nil).Body["data"].([]any)[0].(object)
	require.Equal(t, object{"currency": "EUR", "mrrCents": json.Number("350")}, listed["revenue"])
	require.Equal(t, n.Get(t, posts[1]), apptest.Without(listed, "revenue"))
}

func revenueOfVotes(t *testing.T, n *tenant) {
	board, posts := n.market(t)
	for range 2 { // repeating either changes nothing
		n.Make(t, http.MethodDelete, posts[1]+"/votes?externalUserId=b", nil)
		require.Equal(t, "5:250 1:100 0:100", n.revenues(t, board, "EUR"))
	}
	for range 2 {
		n.Make(t, http.MethodPost, posts[4]+"/votes", object{"externalUserId": "b"})
		require.Equal(t, "5:250 4:250 1:100 0:100", n.revenues(t, board, "EUR"))
	}
	n.Make(t, http.MethodDelete, posts[5], nil)
	require.Equal(t, "4:250 1:100 0:100", n.revenues(t, board, "EUR"))
}

func revenueOfContactsOnly(t *testing.T, n *tenant) {
	board, posts := n.numbered(t, 2)
	member, _ := n.ada(t) // and a contact with one address
	n.paying(t, "u-1", "100 EUR")
	n.Identify(t, object{"externalUserId": "cleo", "email": "cleo@example.com", "mrrCents": 5, "currency": "EUR"})
	member.voteOf(t, posts[0], nil, http.StatusCreated)
	n.anonymousVote(t, posts[0], n.hashOf("cleo@example.com"))
	require.Empty(t, n.revenues(t, board, "EUR"))
	n.voteOf(t, posts[1], object{"externalUserId": "u-1"}, http.StatusCreated)
	require.Equal(t, "1:100", n.revenues(t, board, "EUR"))
	member.Make(t, http.MethodDelete, posts[1]+"/votes", nil) // the same person
	require.Empty(t, n.revenues(t, board, "EUR"))
}

func revenueOfContact(t *testing.T, n *tenant) {
	board, _ := n.market(t)
	n.paying(t, "a", "300 EUR")
	require.Equal(t, "1:550 0:300 5:250", n.revenues(t, board, "EUR"))
	n.paying(t, "b", "70 USD")
	require.Equal(t, []string{"1:300 0:300", "3:900 5:70 1:70"}, []string{n.revenues(t, board, "EUR"), n.revenues(t, board, "USD")})
	n.paying(t, "a", "nothing")
	require.Empty(t, n.revenues(t, board, "EUR"))
	n.Identify(t, object{"externalUserId": "a", "mrrCents": 8, "currency": "EUR"}) // fills in the trait
	n.Identify(t, object{"externalUserId": "a", "mrrCents": 9, "currency": "EUR"}) // does not overwrite it
	n.Make(t, http.MethodPost, "/v1/contacts/identify/batch", object{"contacts": []any{object{"externalUserId": "e", "mrrCents": 11, "currency": "EUR"}}})
	require.Equal(t, "3:11 1:8 0:8", n.revenues(t, board, "EUR"))
}

func revenueMerged(t *testing.T, n *tenant) {
	board, posts := n.market(t)
	n.merge(t, posts[0], posts[1], posts[3], posts[5])
	require.Equal(t, []string{"0:350", "0:900"}, []string{n.revenues(t, board, "EUR"), n.revenues(t, board, "USD")})
	n.voteOf(t, posts[1], object{"externalUserId": "a"}, http.StatusOK) // on the target
	n.Make(t, http.MethodDelete, posts[5]+"/votes?externalUserId=b", nil)
	require.Equal(t, "0:100", n.revenues(t, board, "EUR"))
}

func revenueOfDeletedContact(t *testing.T, n *tenant) {
	board, posts := n.market(t)
	n.Make(t, http.MethodDelete, "/v1/contacts/"+n.Identify(t, object{"externalUserId": "b"})["id"].(string), nil)
	require.Equal(t, "1:100 0:100", n.revenues(t, board, "EUR"))
	require.Equal(t, json.Number("2"), n.Get(t, posts[1])["voteCount"], "the vote stays")
}

func revenueOfLargePosts(t *testing.T, n *tenant) {
	board, posts := n.market(t)
	for _, post := range posts {
		n.Patch(t, post, object{"body": object{"text": strings.Repeat("x", 40_000)}})
	}
	require.Equal(t, "1:350 5:250 0:100", n.revenues(t, board, "EUR"))
}

func revenueWithoutCurrency(t *testing.T, n *tenant) {
	board, _ := n.numbered(t, 1)
	for query, want := range map[string]string{
		"sort=revenue": "currency required", "sort=revenue&currency=eur": "currency pattern", "sort=revenue&currency=": "currency pattern",
		"sort=votes&currency=EUR": "currency revenue", "currency=EUR": "currency revenue",
	} {
		a := n.Refused(t, "ERR_VALIDATION", http.MethodGet, board+"/posts?"+query, nil)
		require.Equal(t, []string{want}, apptest.FieldRules(a), query)
	}
}

func revenueOfDeletedBoard(t *testing.T, n *tenant) {
	board, posts := n.market(t)
	for _, post := range posts {
		n.Make(t, http.MethodDelete, post, nil)
	}
	n.Make(t, http.MethodDelete, board, object{"confirmName": n.boardName(t, board)})
	n.revenueIsExact(t)
}

func (n *tenant) boardName(t *testing.T, board string) string {
	t.Helper()
	for _, b := range n.Do(t, http.MethodGet, "/v1/boards", nil).Body["data"].([]any) {
		if strings.HasSuffix(board, b.(object)["id"].(string)) {
			return b.(object)["name"].(string)
		}
	}
	return ""
}

func TestRevenueStaysExactUnderConcurrentChanges(t *testing.T) {
	t.Parallel()
	togetherOn(t, roomy.Start(t), map[string]func(*testing.T, *tenant){"of votes, merges and contacts": revenueAmid})
}

// revenueAmid runs writers that make random changes of revenue, with few posts and contacts.
func revenueAmid(t *testing.T, n *tenant) {
	const writers, writes, people = 6, 40, 5
	seed := rand.Uint64()
	t.Log("seed:", seed)
	for range 2 {
		board, posts := n.numbered(t, 5)
		var all sync.WaitGroup
		for w := range uint64(writers) {
			all.Go(func() {
				random := rand.New(rand.NewPCG(seed, w))
				for range writes {
					r := n.anyOfRevenue(t, random, posts, fmt.Sprint("p-", random.IntN(people)))
					a := r.do(t)
					assert.Less(t, a.Status, 500, "%s %s: %s", r.method, r.path, a.Raw)
				}
			})
		}
		all.Wait()
		n.revenueIsExact(t)
		for _, currency := range []string{"EUR", "USD"} {
			n.revenues(t, board, currency)
		}
	}
}

// anyOfRevenue returns a random request that may change a person's revenue.
func (n *tenant) anyOfRevenue(t *testing.T, random *rand.Rand, posts []string, id string) request {
	post := posts[random.IntN(len(posts))]
	paid := object{"mrrCents": random.IntN(3) * 100, "currency": []string{"EUR", "USD"}[random.IntN(2)]}
	identified := object{"externalUserId": id, "email": id + "@example.com"}
	switch random.IntN(16) {
	case 0:
		return request{n, http.MethodDelete, "/v1/contacts/" + n.contactOf(t, id), nil}
	case 1:
		source := posts[random.IntN(len(posts))]
		return request{n, http.MethodPost, post + "/merge", object{"sourceIds": idsOf(source)}}
	case 2, 3, 4:
		return request{n, http.MethodPatch, "/v1/contacts/" + n.contactOf(t, id), paid}
	case 5:
		return request{n, http.MethodPatch, "/v1/contacts/" + n.contactOf(t, id), object{"mrrCents": nil, "currency": nil}}
	case 6, 7:
		for name, v := range paid {
			identified[name] = v
		}
		return request{n, http.MethodPost, "/v1/contacts/identify", identified}
	case 8, 9, 10:
		return request{n, http.MethodDelete, post + "/votes?externalUserId=" + id, nil}
	default:
		return request{n, http.MethodPost, post + "/votes", object{"externalUserId": id, "createContact": true}}
	}
}

// contactOf returns the contact's id, or the id of no contact.
func (n *tenant) contactOf(t *testing.T, externalUserID string) string {
	t.Helper()
	for _, c := range n.Do(t, http.MethodGet, "/v1/contacts?externalUserId="+externalUserID, nil).Body["data"].([]any) {
		return c.(object)["id"].(string)
	}
	return "ctc_none"
}

// A batch of contacts updates the revenue of the posts for which they voted. It updates the posts
// in the order of their ids and not in the order of the contacts. Batches with votes on the same
// posts therefore do not deadlock.
func TestABatchOfContactsUpdatesPostRevenuesInOrderOfPostID(t *testing.T) {
	t.Parallel()
	n := &tenant{inTurns.Start(t).Tenant(t)} // no other test waits for locks here
	_, posts := n.numbered(t, 2)
	n.paying(t, "payer", "100 EUR") // both posts have a stored revenue from the start
	for _, post := range posts {
		n.voteOf(t, post, object{"externalUserId": "payer"}, http.StatusCreated)
	}
	db, other := n.connect(t), n.connect(t)
	for k, order := range [][]int{{0, 1}, {1, 0}, {0, 1}, {1, 0}} {
		path := []string{"/v1/contacts/identify/batch", "/v1/contacts/batch"}[k/2]
		var items []object
		for _, i := range order {
			id := fmt.Sprint("voter", k, i)
			n.Identify(t, object{"externalUserId": id})
			n.voteOf(t, posts[i], object{"externalUserId": id}, http.StatusCreated)
			items = append(items, object{"externalUserId": id, "mrrCents": 1, "currency": "EUR"})
		}
		tx, err := db.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), "SELECT FROM post_revenues WHERE post_id = $1 FOR UPDATE", rawID(t, idsOf(posts[0])[0]))
		require.NoError(t, err)
		var batch sync.WaitGroup
		batch.Go(func() {
			a := n.Do(t, http.MethodPost, path, object{"contacts": items})
			assert.Equal(t, 200, a.Status, "%s", a.Raw)
		})
		for waits := false; !waits; {
			const question = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')"
			require.NoError(t, other.QueryRow(t.Context(), question).Scan(&waits))
		}
		_, err = other.Exec(t.Context(), "SELECT FROM post_revenues WHERE post_id = $1 FOR UPDATE NOWAIT", rawID(t, idsOf(posts[1])[0]))
		assert.NoError(t, err, "the batch holds the second post, and waits for the first")
		require.NoError(t, tx.Rollback(t.Context()))
		batch.Wait()
		n.revenueIsExact(t)
	}
}
