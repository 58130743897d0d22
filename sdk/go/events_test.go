package earshot

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func feed(next int64, sequences ...int64) answer {
	events := make([]string, len(sequences))
	for i, n := range sequences {
		events[i] = fmt.Sprintf(`{"id":"evt_%d","sequence":%d,"type":"webhook.test","createdAt":"2026-03-12T10:41:07Z",`+
			`"payload":{"event":"vote.created","organizationId":"org_1","boardId":"brd_1","vote":{"id":"vot_%d","postId":"pst_1","userId":null,"createdAt":"2026-03-12T10:41:07Z"}}}`, n, n, n)
	}
	return answering(200, fmt.Sprintf(`{"data":[%s],"nextAfter":%d}`, strings.Join(events, ","), next))
}

var (
	unavailable = answering(503, `{"error":{"code":"ERR_UNAVAILABLE","message":"Later."}}`)
	gone        = answering(410, `{"error":{"code":"ERR_GONE","message":"Too late.","details":{"latest":12}}}`)
)

func TestTheFeedIsFollowedThroughOutagesUntilAnErrorThatStays(t *testing.T) {
	t.Parallel()
	outage := slices.Repeat([]answer{unavailable, {Cut: "before"}, {Status: 200, Text: "<html>"}}, 4)
	late := unavailable
	late.Headers = map[string]string{"Retry-After": "90"}
	answers := slices.Concat([]answer{feed(2, 1, 2), feed(5)}, outage, []answer{late, feed(5), feed(6, 6), gone})
	s, c := serve(t, nil, answers...)
	var log []string
	note := func(what string, n int64) { log = append(log, fmt.Sprint(what, n)) }
	options := FollowOptions{Types: []EventType{EventTypeVoteCreated}, Save: func(_ context.Context, n int64) error {
		note("saved ", n)
		return nil
	}}
	for event, err := range c.Events.Follow(t.Context(), options) {
		if err != nil {
			if e := (*Error)(nil); !errors.Is(err, ErrGone) || !errors.As(err, &e) || *e.Details.Latest != 12 {
				t.Errorf("it ended with %v", err)
			}
			continue
		}
		if _, known := event.Payload.(*VoteCreatedEvent); !known {
			t.Errorf("the payload is %T", event.Payload)
		}
		note("event ", event.Sequence)
	}
	want := []string{"event 1", "saved 1", "event 2", "saved 2", "saved 5", "event 6", "saved 6"}
	if !reflect.DeepEqual(log, want) {
		t.Errorf("it went %v", log)
	}
	var places []string
	requests, _ := s.came()
	for _, r := range requests {
		if q := r.URL.Query(); q.Get("wait") != "30" || q.Get("types") != "vote.created" {
			t.Errorf("the query is %s", r.URL.RawQuery)
		}
		places = append(places, r.URL.Query().Get("after"))
	}
	if places = slices.Compact(places); !reflect.DeepEqual(places, []string{"", "2", "5", "6"}) {
		t.Errorf("the places are %v", places)
	}
	// net/http repeats the request by itself, without a wait, if a connection was closed.
	if last := len(s.waits) - 2; last < 8 || slices.Max(s.waits[:last]) > longestBackoff || s.waits[last] != 90*time.Second {
		t.Errorf("the waits are %v", s.waits)
	}
	// The last empty answer came immediately, because too many other requests were waiting.
	if pause := s.waits[len(s.waits)-1]; pause < time.Second || pause > 2*time.Second {
		t.Errorf("the feed is asked again after %s", pause)
	}
}

func TestTheFeedIsFollowedAsTheTableSays(t *testing.T) {
	t.Parallel()
	type vector struct {
		Name    string
		After   *int64
		Take    int
		Answers []answer
		Want    struct {
			Log    []string
			Afters []*int64
			Waits  [][2]int
			Error  string
		}
	}
	for _, v := range vectors[vector](t, "feed") {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			s, c := serve(t, nil, v.Answers...)
			log, given, failed := []string{}, 0, ""
			save := func(_ context.Context, n int64) error { log = append(log, fmt.Sprint("saved ", n)); return nil }
			for event, err := range c.Events.Follow(t.Context(), FollowOptions{After: v.After, Save: save}) {
				if err != nil {
					failed = outcome(err)
					continue // an error ends the iteration
				}
				log = append(log, fmt.Sprint("event ", event.Sequence))
				if given++; given == v.Take {
					break
				}
			}
			if !slices.Equal(log, v.Want.Log) || failed != v.Want.Error {
				t.Errorf("it went %v, then %q", log, failed)
			}
			s.checkWaits(t, v.Want.Waits)
			requests, _ := s.came()
			if len(requests) != len(v.Want.Afters) {
				t.Fatalf("there were %d requests", len(requests))
			}
			for i, after := range v.Want.Afters {
				want := url.Values{"wait": {"30"}}
				if after != nil {
					want.Set("after", strconv.FormatInt(*after, 10))
				}
				if requests[i].URL.RawQuery != want.Encode() {
					t.Errorf("request %d has the query %s", i, requests[i].URL.RawQuery)
				}
			}
		})
	}
}

func TestAPlaceInTheFeedThatCannotBeSavedEndsIt(t *testing.T) {
	t.Parallel()
	_, c := serve(t, nil, feed(2, 1, 2))
	full := errors.New("the disk is full")
	options := FollowOptions{Save: func(context.Context, int64) error { return full }}
	events := 0
	for _, err := range c.Events.Follow(t.Context(), options) {
		if events++; events == 2 && !errors.Is(err, full) {
			t.Errorf("it ended with %v", err)
		}
	}
	if events != 2 {
		t.Errorf("it yielded %d times", events)
	}
}

func TestAnEventOfTheFeedIsEncodedAsItCame(t *testing.T) {
	t.Parallel()
	_, c := serve(t, nil, feed(1, 1))
	page, err := c.Events.List(t.Context(), ListEventsParams{})
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, page, string(feed(1, 1).Body))
}

func TestAWidgetsTokenIsAJWTForAnHour(t *testing.T) {
	t.Parallel()
	claims := WidgetClaims{
		OrganizationID: "org_1", ExternalUserID: "acct-7", Email: "ada@example.com", MRRCents: Ptr[int64](0), Currency: "EUR", Now: time.Unix(1_700_000_000, 0),
	}
	token, err := WidgetToken("wsk_1", "wgsec_secret", claims)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(token, ".")
	mac := hmac.New(sha256.New, []byte("wgsec_secret"))
	mac.Write([]byte(parts[0] + "." + parts[1]))
	if parts[2] != base64.RawURLEncoding.EncodeToString(mac.Sum(nil)) {
		t.Error("the signature isn't the secret's")
	}
	header, _ := base64.RawURLEncoding.DecodeString(parts[0])
	payload, _ := base64.RawURLEncoding.DecodeString(parts[1])
	if string(header) != `{"alg":"HS256","kid":"wsk_1","typ":"JWT"}` {
		t.Errorf("the header is %s", header)
	}
	if want := `{"sub":"acct-7","iss":"org_1","aud":"widget","iat":1700000000,"exp":1700003600,"email":"ada@example.com","mrrCents":0,"currency":"EUR"}`; string(payload) != want {
		t.Errorf("the claims are %s", payload)
	}

	claims.ValidFor = 2 * time.Hour
	_, long := WidgetToken("wsk_1", "wgsec_secret", claims)
	_, nobody := WidgetToken("wsk_1", "wgsec_secret", WidgetClaims{OrganizationID: "org_1"})
	if long == nil || nobody == nil {
		t.Error("a token that the service refuses was signed")
	}
}
