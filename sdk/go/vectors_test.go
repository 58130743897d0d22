package earshot

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// The tables are test cases of all SDKs. Their `about` explains them.

// vectors reads the cases of a table.
func vectors[T any](t *testing.T, name string) []T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "vectors", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var table struct{ Cases []T }
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	if len(table.Cases) == 0 {
		t.Fatal("there are no cases")
	}
	return table.Cases
}

func TestRequestsAreRepeatedAsTheTableSays(t *testing.T) {
	t.Parallel()
	type vector struct {
		Name, Call, IdempotencyKey string
		MaxRetries                 *int
		Answers                    []answer
		Want                       struct {
			Requests int
			Waits    [][2]int
			OK       bool
			Error    string
			Key      *string
		}
	}
	for _, v := range vectors[vector](t, "retries") {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			s, c := serve(t, func(o *Options) { o.MaxRetries = v.MaxRetries }, v.Answers...)
			var options []CallOption
			if v.IdempotencyKey != "" {
				options = append(options, IdempotencyKey(v.IdempotencyKey))
			}
			var err error
			switch v.Call {
			case "create":
				_, err = c.Posts.Create(t.Context(), "brd_1", CreatePostRequest{Title: "A"}, options...)
			case "get":
				_, err = c.Posts.Get(t.Context(), "pst_1", options...)
			case "identify":
				_, err = c.Contacts.Identify(t.Context(), IdentifyContactRequest{ExternalUserID: "u"}, options...)
			default:
				t.Fatal("no such call:", v.Call)
			}
			want := v.Want.Error
			if v.Want.OK {
				want = "ok"
			}
			if got := outcome(err); got != want {
				t.Errorf("it came to %s, not %s", got, want)
			}
			requests, _ := s.came()
			if len(requests) != v.Want.Requests {
				t.Fatalf("%d requests after waits of %v", len(requests), s.waits)
			}
			s.checkWaits(t, v.Want.Waits)
			checkKeys(t, requests, v.Call == "create", v.Want.Key)
		})
	}
}

// checkWaits checks the waits against the table. Each lies between two numbers of milliseconds.
func (s *service) checkWaits(t *testing.T, want [][2]int) {
	t.Helper()
	if len(s.waits) != len(want) {
		t.Fatalf("the waits are %v", s.waits)
	}
	for i, between := range want {
		if ms := int(s.waits[i].Milliseconds()); ms < between[0] || ms > between[1] {
			t.Errorf("wait %d is %s", i, s.waits[i])
		}
	}
}

// checkKeys checks that all requests of a write have the same key.
func checkKeys(t *testing.T, requests []*http.Request, write bool, want *string) {
	t.Helper()
	for _, r := range requests {
		key, all := r.Header.Get(idempotencyHeader), requests[0].Header.Get(idempotencyHeader)
		if (key != "") != write || key != all {
			t.Errorf("%s has the key %q after %q", r.Method, key, all)
		}
		if want != nil && key != *want {
			t.Errorf("the key is %q and not the caller's", key)
		}
	}
}

func TestAnErrorReportsTheErrorResponseOfTheService(t *testing.T) {
	t.Parallel()
	type vector struct {
		answer
		Name string
		Want struct {
			Status    int
			Code      ErrorCode
			Message   *string
			RequestID string
			Details   map[string]any
		}
	}
	for _, v := range vectors[vector](t, "errors") {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			_, c := serve(t, nil, v.answer)
			_, err := c.Posts.Create(t.Context(), "brd_1", CreatePostRequest{Title: "A"}, MaxRetries(0))
			var e *Error
			if !errors.As(err, &e) || e.Status != v.Want.Status || e.Code != v.Want.Code || e.RequestID != v.Want.RequestID {
				t.Fatalf("it is %v", err)
			}
			if v.Want.Message != nil && e.Message != *v.Want.Message || e.Message == "" {
				t.Errorf("the message is %q", e.Message)
			}
			if !errors.Is(err, v.Want.Code) || errors.Is(err, ErrorCode("ERR_OTHER")) {
				t.Error("errors.Is doesn't know it by its code")
			}
			var details map[string]any
			text, err := json.Marshal(e.Details)
			if err != nil || json.Unmarshal(text, &details) != nil || !reflect.DeepEqual(details, v.Want.Details) {
				t.Errorf("the details are %s (%v)", text, err)
			}
		})
	}
}

func TestListsAreReadToTheirEndAndNoFurtherThanWanted(t *testing.T) {
	t.Parallel()
	type vector struct {
		Name, Cursor string
		Take         int
		Answers      []answer
		Want         struct {
			IDs     []string
			Cursors []*string
			Error   string
		}
	}
	for _, v := range vectors[vector](t, "pages") {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			s, c := serve(t, nil, v.Answers...)
			list := c.Posts.List(t.Context(), "brd_1", ListPostsParams{
				Cursor: v.Cursor, Status: []PostStatus{PostStatusOpen}, TagIDs: []string{"tag_1", "tag_2"},
			})
			ids, failed := []string{}, ""
			for post, err := range list.All() {
				if err != nil {
					failed = outcome(err)
					continue // an error ends the iteration
				}
				ids = append(ids, post.ID)
				if len(ids) == v.Take {
					break
				}
			}
			if !slices.Equal(ids, v.Want.IDs) || failed != v.Want.Error {
				t.Errorf("it came to %v, then %q", ids, failed)
			}
			var cursors []*string
			requests, _ := s.came()
			for _, r := range requests {
				q := r.URL.Query()
				if q.Get("status") != "open" || q.Get("tagIds") != "tag_1,tag_2" {
					t.Errorf("the query is %s", r.URL.RawQuery)
				}
				var cursor *string
				if q.Has("cursor") {
					cursor = Ptr(q.Get("cursor"))
				}
				cursors = append(cursors, cursor)
			}
			if !reflect.DeepEqual(cursors, v.Want.Cursors) {
				t.Errorf("%d requests have other cursors than the table", len(cursors))
			}
		})
	}
}

func TestAnEventWithAnInvalidSignatureIsNotUnwrapped(t *testing.T) {
	t.Parallel()
	type vector struct {
		Name, Secret, Signature, Body string
		Now                           int64
		Want                          struct{ Event, Error string }
	}
	checks := map[string]error{
		"secret": ErrWebhookSecret, "signature": ErrWebhookSignature, "timestamp": ErrWebhookTimestamp, "payload": ErrWebhookPayload,
	}
	for _, v := range vectors[vector](t, "signatures") {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			verifier := Verifier{Secret: v.Secret, Now: func() time.Time { return time.Unix(v.Now, 0) }}
			event, err := verifier.Unwrap([]byte(v.Body), http.Header{signatureHeader: {v.Signature}})
			if v.Want.Error != "" {
				if check := checks[v.Want.Error]; check == nil || !errors.Is(err, check) || event != nil {
					t.Fatalf("%s refused it, and not the check of the %s", err, v.Want.Error)
				}
				return
			}
			if err != nil || event.EventName() != v.Want.Event {
				t.Fatalf("it is %v (%v)", event, err)
			}
			if strings.Contains(v.Name, "doesn't know") {
				sameJSON(t, event, v.Body)
			}
		})
	}
}
