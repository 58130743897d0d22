package webhooks_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/ent/db/delivery"
	"earshot/internal/event"
	"earshot/internal/publicid"
	"earshot/internal/testkit/apptest"
)

func TestAWebhook(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"shows its secret when it is made and never again": secretOnce,
		"needs a paid plan":                                  paidPlan,
		"subscribes to each event once":                      distinctEvents,
		"is refused an address that can't be public":         badAddresses,
		"is refused events that there are not":               badEvents,
		"changes in the members that are sent and no others": patchWebhook,
		"goes with its log":                                  deleteWebhook,
		"has a log that can be filtered":                     filterLog,
		"has a log that is walked with every filter":         walkFilteredLog,
		"has a log that begins at the moment asked for":      logSince,
		"has a log that refuses a date for a moment":         logSinceADate,
		"has a log of its own":                               ownLog,
	})
}

func secretOnce(t *testing.T, n *tenant) {
	a := n.Do(t, http.MethodPost, "/v1/webhooks", apptest.Registration)
	require.Equal(t, http.StatusCreated, a.Status)
	made := a.Data()
	require.Regexp(t, "^whsec_[0-9A-Za-z]{32}$", made["secret"])
	require.Equal(t, object{
		"organizationId": n.Organization.ID.String(), "url": apptest.Registration["url"], "events": []any{"post.created"},
		"description": nil, "metadata": object{}, "maxPerSecond": nil, "enabled": true, "disabledAt": nil,
		"disabledReason": nil, "consecutiveFailures": json.Number("0"),
	}, apptest.Without(made, "id", "secret", "createdAt", "updatedAt"))
	shown := apptest.Without(made, "secret")
	hook := "/v1/webhooks/" + made["id"].(string)
	require.Equal(t, shown, n.Get(t, hook))
	require.Equal(t, []any{shown}, n.Do(t, http.MethodGet, "/v1/webhooks", nil).Body["data"])
	require.NotContains(t, n.Patch(t, hook, object{"enabled": false}), "secret")
	require.NotEqual(t, made["secret"], n.Make(t, http.MethodPost, "/v1/webhooks", apptest.Registration)["secret"])
}

func paidPlan(t *testing.T, n *tenant) {
	free := n.on(t, "free")
	a := free.Refused(t, "ERR_PLAN_LIMIT", http.MethodPost, "/v1/webhooks", apptest.Registration)
	require.Equal(t, http.StatusPaymentRequired, a.Status)
	require.Equal(t, "map[current:0 limit:0 resource:webhook]", fmt.Sprint(a.Details()))
	n.on(t, "pro").Make(t, http.MethodPost, "/v1/webhooks", apptest.Registration)
}

func distinctEvents(t *testing.T, n *tenant) {
	made := n.Make(t, http.MethodPost, "/v1/webhooks", object{
		"url": "https://example.com", "events": []string{"vote.created", "post.created", "vote.created"},
	})
	require.Equal(t, []any{"vote.created", "post.created"}, made["events"])
	n.ID(t, n.Post(t)+"/votes", nil)
	require.Len(t, n.Walk(t, "/v1/webhooks/"+made["id"].(string)+"/deliveries", "50", func() {}), 2)
}

func badAddresses(t *testing.T, n *tenant) {
	hook := "/v1/webhooks/" + n.Listen(t)
	unchanged := n.Watch(t)
	for _, url := range []string{
		"", "example.com", "/hook", "ftp://example.com", "https://", "https:///x", "https://user:pw@example.com",
		"https://example.com#part", "https://10.0.0.1", "https://169.254.169.254/latest", "https://[fd00::1]", "https://0x7f.1.2.3.4.5",
		"https://10.1", "https://0xa000001", "https://012.0.0.1", "https://167772161", "https://①⓪.0.0.1", "https://10.0.0.1.",
		"https://[::ffff:10.0.0.1]", "https://[64:ff9b::10.0.0.1]", "https://[2002:a00:1::]", "https://168.63.129.16", "https://100.64.0.1",
		"https://exa mple.com", "https://example.com:99999", "https://example.com\x00", "javascript:alert(1)",
		"https://example.com/" + strings.Repeat("x", 2029),
	} {
		made := n.Do(t, http.MethodPost, "/v1/webhooks", object{"url": url, "events": []string{"post.created"}})
		require.Contains(t, made.Fields(), "url", url)
		changed := n.Do(t, http.MethodPatch, hook, object{"url": url, "enabled": false})
		require.Contains(t, changed.Fields(), "url", url)
	}
	unchanged(t)
	longest := "https://example.com/" + strings.Repeat("x", 2028)
	require.Equal(t, longest, n.Patch(t, hook, object{"url": longest})["url"])
}

func badEvents(t *testing.T, n *tenant) {
	hook := "/v1/webhooks/" + n.Listen(t)
	a := n.Refused(t, "ERR_VALIDATION", http.MethodPost, "/v1/webhooks", object{
		"url": "https://example.com", "events": []string{"post.created", "*", "Post.Created", ""},
	})
	require.Equal(t, []string{"events[1]", "events[2]", "events[3]"}, a.Fields())
	a = n.Refused(t, "ERR_VALIDATION", http.MethodPatch, hook, object{"events": []string{}})
	require.Equal(t, []string{"events"}, a.Fields())
	a = n.Refused(t, "ERR_VALIDATION", http.MethodPost, "/v1/webhooks", object{})
	require.ElementsMatch(t, []string{"url", "events"}, a.Fields())
}

func patchWebhook(t *testing.T, n *tenant) {
	hook := "/v1/webhooks/" + n.Listen(t)
	for _, change := range []object{
		{"url": "https://example.com/other"}, {"events": []any{"vote.created"}}, {"enabled": false}, {"enabled": true},
	} {
		before := n.Get(t, hook)
		got := n.Patch(t, hook, change)
		for name, value := range change {
			require.Equal(t, value, got[name])
			before[name] = value
		}
		require.Equal(t, got["enabled"] == true, got["disabledAt"] == nil)
		require.Equal(t, map[bool]any{true: nil, false: "requested"}[got["enabled"] == true], got["disabledReason"])
		apptest.Later(t, got, before, "updatedAt")
		for _, name := range []string{"updatedAt", "disabledAt", "disabledReason"} {
			before[name] = got[name]
		}
		require.Equal(t, before, got)
		unchanged := n.Watch(t)
		require.Equal(t, got, n.Patch(t, hook, got), "sent back as it was read")
		unchanged(t)
	}
}

func deleteWebhook(t *testing.T, n *tenant) {
	id, kept := n.Listen(t), n.Listen(t)
	n.Post(t)
	hook := "/v1/webhooks/" + id
	one := hook + "/deliveries/" + n.Do(t, http.MethodGet, hook+"/deliveries", nil).Body["data"].([]any)[0].(object)["id"].(string)
	require.Equal(t, object{"id": id}, n.Make(t, http.MethodDelete, hook, nil))
	for _, of := range []string{hook, hook + "/deliveries", one, hook + "/recoveries"} {
		n.Refused(t, "ERR_NOT_FOUND", http.MethodGet, of, nil)
	}
	n.Refused(t, "ERR_NOT_FOUND", http.MethodPost, one+"/replay", nil)
	n.Refused(t, "ERR_NOT_FOUND", http.MethodPost, hook+"/test", nil)
	n.Refused(t, "ERR_NOT_FOUND", http.MethodPatch, hook, object{"enabled": true})
	n.Refused(t, "ERR_NOT_FOUND", http.MethodDelete, hook, nil)
	require.Len(t, n.Do(t, http.MethodGet, "/v1/webhooks", nil).Body["data"], 1)
	require.Len(t, n.Walk(t, "/v1/webhooks/"+kept+"/deliveries", "50", func() {}), 1)
}

func filterLog(t *testing.T, n *tenant) {
	hook := n.Listen(t)
	post := n.Post(t)
	n.ID(t, post+"/votes", nil)
	n.ID(t, post+"/comments", object{"body": object{"text": "x"}})
	all := n.App.Store.Client().Delivery.Query().AllX(n.Context(t.Context()))
	by := map[string]*db.Delivery{}
	for _, d := range all {
		by[d.EventType] = d
	}
	ended := by["vote.created"]
	n.App.Store.Client().Delivery.Update().Where(delivery.ID(ended.ID)).SetStatus("succeeded").ExecX(n.Context(t.Context()))
	last := by["comment.created"].CreatedAt.Format("2006-01-02T15:04:05.000000Z07:00")
	for query, want := range map[string]int{
		"": 3, "status=pending": 2, "status=succeeded": 1, "status=failed": 0, "eventType=vote.created": 1,
		"eventType=contact.created": 0, "status=pending&eventType=vote.created": 0, "since=" + last: 1,
		"since=2000-01-01T00:00:00Z": 3, "since=2100-01-01T00:00:00%2B02:00": 0,
	} {
		a := n.Do(t, http.MethodGet, "/v1/webhooks/"+hook+"/deliveries?"+query, nil)
		require.Len(t, a.Body["data"], want, query)
	}
	for query, field := range map[string]string{
		"status=done": "status", "eventType=x": "eventType", "since=yesterday": "since", "since=": "since", "status=": "status",
		"eventType=": "eventType",
	} {
		a := n.Refused(t, "ERR_VALIDATION", http.MethodGet, "/v1/webhooks/"+hook+"/deliveries?"+query, nil)
		require.Equal(t, []string{field}, a.Fields(), query)
	}
}

// mixedLog makes a log of 17 deliveries of two types, in which every third delivery is in the same
// state. It returns the log's path and its rows.
func (n *tenant) mixedLog(t *testing.T) (path string, rows []any) {
	t.Helper()
	path = "/v1/webhooks/" + n.Listen(t) + "/deliveries"
	n.Listen(t) // another webhook, whose log must not appear
	post := n.Post(t)
	for range 8 {
		n.Comment(t, post, "")
		n.ID(t, n.Board(t)+"/posts", object{"title": "x"})
	}
	states := []delivery.Status{"pending", "succeeded", "failed"}
	for i, id := range n.Walk(t, path, "200", func() {}) {
		d, err := publicid.Parse[publicid.Delivery](id)
		require.NoError(t, err)
		n.App.Store.Client().Delivery.UpdateOneID(d).SetStatus(states[i%3]).ExecX(n.Context(t.Context()))
	}
	rows = n.Do(t, http.MethodGet, path, nil).Body["data"].([]any)
	require.Len(t, rows, 17)
	return path, rows
}

func walkFilteredLog(t *testing.T, n *tenant) {
	path, rows := n.mixedLog(t)
	since := rows[11].(object)["createdAt"].(string)
	recent := func(d object) bool {
		return !apptest.Moment(t, d, "createdAt").Before(apptest.Moment(t, rows[11].(object), "createdAt"))
	}
	for query, meets := range map[string]func(object) bool{
		"":                       func(object) bool { return true },
		"status=failed":          func(d object) bool { return d["status"] == "failed" },
		"eventType=post.created": func(d object) bool { return d["eventType"] == "post.created" },
		"since=" + since:         recent,
		"status=succeeded&eventType=comment.created": func(d object) bool {
			return d["status"] == "succeeded" && d["eventType"] == "comment.created"
		},
		"status=pending&eventType=post.created&since=" + since: func(d object) bool {
			return d["status"] == "pending" && d["eventType"] == "post.created" && recent(d)
		},
		"status=failed&since=2100-01-01T00:00:00Z": func(object) bool { return false },
	} {
		var want []string
		for _, row := range rows {
			if d := row.(object); meets(d) {
				want = append(want, d["id"].(string))
			}
		}
		for _, limit := range []string{"1", "2", "5", "200"} {
			require.Equal(t, want, n.Walk(t, path, limit+"&"+query, func() {}), "%s by %s", query, limit)
		}
	}
}

func logSince(t *testing.T, n *tenant) {
	path := "/v1/webhooks/" + n.Listen(t) + "/deliveries"
	for range 3 {
		n.Post(t)
	}
	rows := n.Do(t, http.MethodGet, path, nil).Body["data"].([]any)
	at := apptest.Moment(t, rows[1].(object), "createdAt")
	elsewhere := time.FixedZone("", 2*60*60)
	for since, want := range map[string]int{
		at.Format(time.RFC3339Nano):                                                                     2,
		at.In(elsewhere).Format(time.RFC3339Nano):                                                       2,
		at.Add(-time.Microsecond).Format(time.RFC3339Nano):                                              2,
		at.Add(time.Microsecond).Format(time.RFC3339Nano):                                               1,
		apptest.Moment(t, rows[0].(object), "createdAt").Add(time.Microsecond).Format(time.RFC3339Nano): 0,
		at.Add(-time.Hour).Format(time.RFC3339):                                                         3,
		"1969-12-31T23:59:59Z":                                                                          3,
		"0001-01-02T00:00:00Z":                                                                          3,
		"9999-12-31T23:59:59Z":                                                                          0,
	} {
		a := n.Do(t, http.MethodGet, path+"?since="+url.QueryEscape(since), nil)
		require.Len(t, a.Body["data"], want, "%s: %s", since, a.Raw)
	}
}

func logSinceADate(t *testing.T, n *tenant) {
	a := n.Refused(t, "ERR_VALIDATION", http.MethodGet, "/v1/webhooks/"+n.Listen(t)+"/deliveries?since=2026-03-12", nil)
	require.Equal(t, []string{"since"}, a.Fields())
}

func ownLog(t *testing.T, n *tenant) {
	mine, other := n.Listen(t, event.PostCreated), n.Listen(t, event.VoteCreated)
	n.ID(t, n.Post(t)+"/votes", nil)
	log := n.Walk(t, "/v1/webhooks/"+mine+"/deliveries", "50", func() {})
	require.Len(t, log, 1)
	n.Refused(t, "ERR_NOT_FOUND", http.MethodGet, "/v1/webhooks/"+other+"/deliveries/"+log[0], nil)
	require.Equal(t, mine, n.Get(t, "/v1/webhooks/"+mine+"/deliveries/"+log[0])["webhookId"])
}
