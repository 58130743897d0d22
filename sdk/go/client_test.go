package earshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

const aPost = `{"id":"pst_1","organizationId":"org_1","boardId":"brd_1","title":"A","slug":"a","status":"open","body":{"json":null,"text":""},` +
	`"contactId":null,"authorUserId":null,"hideFromRoadmap":false,"tagIds":[],"voteCount":0,"commentCount":0,"mergedIntoId":null,` +
	`"lastActivityAt":"2026-03-12T10:41:07.233Z","createdAt":"2026-03-12T10:41:07.233Z","updatedAt":"2026-03-12T10:41:07.233Z"}`

func answering(status int, body string) answer {
	return answer{Status: status, Body: json.RawMessage(body)}
}

func TestAClientWithoutAKeyOrWithABaseURLThatIsNoneIsRefusedAtOnce(t *testing.T) {
	t.Setenv("EARSHOT_API_KEY", "")
	for _, key := range []string{"", "esk_hush\n"} {
		if _, err := New(Options{APIKey: key}); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v", key, err)
		}
	}
	for base, says := range map[string]string{
		"example.com":               "http://",
		"ftp://example.com":         "http://",
		"http:example.com":          "host",
		"https:///v1":               "host",
		"http://:4280":              "host",
		"http://ada@example.com":    "user",
		"http://a:hush@example.com": "user",
		"http://example.com?hush=1": "query",
		"http://example.com/?":      "query",
		"http://example.com/#hush":  "fragment",
		"http://a:hu/sh@example":    "no URL",
	} {
		_, err := New(Options{APIKey: "esk_1", BaseURL: base})
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hu") {
			t.Errorf("%q: %v", base, err)
		}
	}
}

func TestAHeaderThatCannotBeSentIsToldAtOnce(t *testing.T) {
	t.Parallel()
	s, c := serve(t, nil, answering(200, `{"data":`+aPost+`}`))
	for _, value := range []string{"", "a\nb", "a\x00", "\u00e9", strings.Repeat("a", 256)} {
		_, err := c.Posts.Create(t.Context(), "brd_1", CreatePostRequest{Title: "A"}, IdempotencyKey(value))
		if err == nil || outcome(err) == "CONNECTION" || !strings.Contains(err.Error(), "Idempotency-Key") {
			t.Errorf("the key %q: %v", value, err)
		}
	}
	for _, value := range []string{"", "\"7\"\r\n"} { // without a tag, the write would ignore other changes
		_, err := c.Posts.Update(t.Context(), "pst_1", UpdatePostRequest{Title: Ptr("B")}, IfMatch(value))
		if err == nil || outcome(err) == "CONNECTION" || !strings.Contains(err.Error(), "If-Match") {
			t.Errorf("the tag %q: %v", value, err)
		}
	}
	if requests, _ := s.came(); len(requests) != 0 || len(s.waits) != 0 {
		t.Error("something was sent")
	}
	if _, err := c.Posts.Create(t.Context(), "brd_1", CreatePostRequest{Title: "A"}, IdempotencyKey(strings.Repeat("a", 255))); err != nil {
		t.Error(err)
	}
}

func TestKeyAndAddressComeFromTheEnvironmentWhereNoneAreGiven(t *testing.T) {
	var asked *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r
		_, _ = fmt.Fprintf(w, `{"data":%s}`, aPost)
	}))
	defer server.Close()
	t.Setenv("EARSHOT_API_KEY", "esk_environment")
	t.Setenv("EARSHOT_BASE_URL", server.URL+"/")
	c, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Posts.Get(t.Context(), "a/b?c"); err != nil {
		t.Fatal(err)
	}
	if asked.Header.Get("Authorization") != "Bearer esk_environment" || asked.Header.Get("User-Agent") != "earshot-go/"+Version {
		t.Errorf("the headers are %v", asked.Header)
	}
	if asked.URL.EscapedPath() != "/v1/posts/a%2Fb%3Fc" {
		t.Errorf("the path is %s", asked.URL.EscapedPath())
	}
}

func TestAnEmptyIDIsNotSent(t *testing.T) {
	t.Parallel()
	s, c := serve(t, nil, answering(200, `{"data":`+aPost+`}`))
	for _, id := range []string{"", ".", ".."} {
		if _, err := c.Posts.Delete(t.Context(), id); err == nil {
			t.Errorf("%q was taken", id)
		}
		for _, err := range c.Posts.List(t.Context(), id, ListPostsParams{}).All() {
			if err == nil {
				t.Errorf("%q was taken", id)
			}
		}
	}
	if requests, _ := s.came(); len(requests) != 0 {
		t.Error("something was sent")
	}
}

func TestUnknownValuesAndMembersSurviveARoundTrip(t *testing.T) {
	t.Parallel()
	text := strings.Replace(aPost, `"status":"open"`, `"status":"parked","weight":12345678901234567890,"extra":{"a":[1]}`, 1)
	_, c := serve(t, nil, answering(200, `{"data":`+text+`}`))
	post, err := c.Posts.Get(t.Context(), "pst_1")
	if err != nil {
		t.Fatal(err)
	}
	if post.Status != "parked" || string(post.Extra["weight"]) != "12345678901234567890" {
		t.Errorf("it is %+v", post)
	}
	sameJSON(t, post, text)
}

func TestAMemberIsLeftOutNullOrSet(t *testing.T) {
	t.Parallel()
	for want, body := range map[string]UpdatePostRequest{
		`{}`:                 {},
		`{"contactId":null}`: {ContactID: Null[string]()},
		`{"contactId":"ctc_1","hideFromRoadmap":false,"tagIds":[]}`: {ContactID: Some("ctc_1"), HideFromRoadmap: Ptr(false), TagIDs: []string{}},
	} {
		if text, err := json.Marshal(body); err != nil || string(text) != want {
			t.Errorf("%s is %s (%v)", want, text, err)
		}
		var again UpdatePostRequest
		if err := json.Unmarshal([]byte(want), &again); err != nil || again.ContactID.String() != body.ContactID.String() {
			t.Errorf("%s is read as %v (%v)", want, again.ContactID, err)
		}
	}
}

func TestAWriteIsMadeOnlyIfNothingHasChanged(t *testing.T) {
	t.Parallel()
	s, c := serve(t, nil,
		answer{Status: 200, Headers: map[string]string{"ETag": `"7"`}, Body: json.RawMessage(`{"data":` + aPost + `}`)},
		answering(412, `{"error":{"code":"ERR_PRECONDITION_FAILED","message":"It isn't any more."}}`))
	var answer Answer
	if _, err := c.Posts.Get(t.Context(), "pst_1", WithAnswer(&answer)); err != nil {
		t.Fatal(err)
	}
	_, err := c.Posts.Update(t.Context(), "pst_1", UpdatePostRequest{Title: Ptr("B")}, IfMatch(answer.Header.Get("ETag")))
	if !errors.Is(err, ErrPreconditionFailed) {
		t.Errorf("it is %v", err)
	}
	requests, bodies := s.came()
	if requests[1].Header.Get("If-Match") != `"7"` || bodies[1] != `{"title":"B"}` {
		t.Errorf("it was %v %s", requests[1].Header, bodies[1])
	}
}

// silent starts a service that never answers. requests gets a value for each request.
func silent(t *testing.T) (url string, requests chan struct{}) {
	t.Helper()
	requests = make(chan struct{}, 9)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		requests <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	return server.URL, requests
}

func TestARequestThatTakesTooLongIsRepeatedAndToldFromTheCallersEnd(t *testing.T) {
	t.Parallel()
	url, requests := silent(t)
	s, c := serve(t, func(o *Options) { o.BaseURL = url }, answer{})
	_, err := c.Posts.Get(t.Context(), "pst_1", Timeout(time.Millisecond), MaxRetries(2))
	var none *ConnectionError
	if !errors.As(err, &none) || !none.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it is %v", err)
	}
	// A request may end before it has reached the service.
	if len(s.waits) != 2 || len(requests) > 3 {
		t.Errorf("%d requests reached the service, after waits of %v", len(requests), s.waits)
	}
}

func TestCancellingEndsARequestAndAWaitAtOnce(t *testing.T) {
	t.Parallel()
	url, requests := silent(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-requests; cancel() }()
	_, c := serve(t, func(o *Options) { o.BaseURL = url }, answer{})
	if _, err := c.Posts.Get(ctx, "pst_1"); !errors.Is(err, context.Canceled) || outcome(err) == "CONNECTION" {
		t.Errorf("the request ended with %v", err)
	}

	ctx, cancel = context.WithCancel(t.Context())
	s, c := serve(t, func(o *Options) {
		o.Sleep = func(ctx context.Context, _ time.Duration) error { cancel(); return sleep(ctx, time.Hour) }
	}, answering(503, `{"error":{"code":"ERR_UNAVAILABLE","message":"Later."}}`))
	if _, err := c.Posts.Get(ctx, "pst_1"); !errors.Is(err, context.Canceled) {
		t.Errorf("the wait ended with %v", err)
	}
	if requests, _ := s.came(); len(requests) != 1 {
		t.Errorf("there were %d requests", len(requests))
	}
}
