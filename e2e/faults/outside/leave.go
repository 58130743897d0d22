package outside

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/go-faster/errors"
)

// Mark is part of the name, the address and the texts of every erased person. After the last
// erasure, no row of the database may contain it.
const Mark = "zzleaver"

// Place is a board and a post on it, where visitors act.
type Place struct {
	// Board and On are the ids of the board and the post. BoardPath and PostPath are their paths.
	Board, On           string
	BoardPath, PostPath string
}

// Form returns the path of the form for an interaction.
func (p Place) Form(k Kind) string {
	if k == Post {
		return p.BoardPath + "/-/new"
	}
	return p.PostPath + "/-/" + string(k)
}

// Gone is an erased person.
type Gone struct {
	Email string
	// Subjects are the ids of the contact and of the person's activity.
	Subjects []string
}

// Leaver plays persons who act on a public board, get an export and are erased.
type Leaver struct {
	Site    Site
	Place   Place
	Mailbox *Mailbox
	API     *API
}

// Leave plays person number n. An error is a broken promise of the service.
func (l *Leaver) Leave(ctx context.Context, n int) (gone Gone, err error) {
	interactions, err := l.act(ctx, n)
	if err != nil {
		return gone, errors.Wrap(err, "act")
	}
	gone.Email = interactions[0].Email
	contact, err := l.contact(ctx, gone.Email)
	if err != nil {
		return gone, err
	}
	if gone.Subjects, err = l.export(ctx, contact, interactions); err != nil {
		return gone, errors.Wrap(err, "export")
	}
	if err := l.erase(ctx, contact); err != nil {
		return gone, errors.Wrap(err, "erase")
	}
	return gone, nil
}

// act posts, votes and comments, and opts in.
func (l *Leaver) act(ctx context.Context, n int) ([]*Interaction, error) {
	v := l.Site.Visitor(n, l.Mailbox)
	var interactions []*Interaction
	failed := make([]error, 3)
	var all sync.WaitGroup
	for i, kind := range []Kind{Post, Vote, Comment} {
		w := &Interaction{
			Kind: kind, At: l.Place.Form(kind), Words: fmt.Sprintf("%s wants a %s %d", Mark, kind, n),
			Name: fmt.Sprintf("%s %d", Mark, n), Email: fmt.Sprintf("%s-%d@example.com", Mark, n), OptIn: true,
		}
		interactions = append(interactions, w)
		all.Go(func() { failed[i] = v.Ask(ctx, w) })
	}
	all.Wait()
	if err := errors.Join(failed...); err != nil {
		return nil, err
	}
	return interactions, l.confirm(ctx, v, interactions)
}

// confirm uses one link of each kind. The e-mail's subject names the kind.
func (l *Leaver) confirm(ctx context.Context, v *Visitor, interactions []*Interaction) error {
	for _, w := range interactions {
		used := map[string]bool{}
		err := insist(ctx, func(context.Context) error {
			all, err := l.Mailbox.First()
			if err != nil {
				return err
			}
			for _, letter := range all {
				if letter.To != w.Email || used[letter.Link] || !strings.Contains(letter.Subject, string(w.Kind)) {
					continue
				}
				used[letter.Link] = true
				return v.Press(ctx, w, letter.Link)
			}
			return errAway
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *Leaver) contact(ctx context.Context, email string) (id string, err error) {
	var found []struct{ ID string }
	if err := l.API.data(ctx, http.MethodGet, "/v1/contacts?"+url.Values{"email": {email}}.Encode(), "", nil, &found); err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", errors.Errorf("%s opted in and is %d contacts", email, len(found))
	}
	return found[0].ID, nil
}

// receipt is the resource of an export or an erasure.
type receipt struct {
	ID, Status string
	Records    int
}

// finished waits until a request is completed.
func (l *Leaver) finished(ctx context.Context, r receipt) (receipt, error) {
	for r.Status == "running" {
		if err := pause(ctx, againPause); err != nil {
			return r, errors.Wrapf(err, "wait for %s", r.ID)
		}
		if err := l.API.data(ctx, http.MethodGet, "/v1/subject-requests/"+r.ID, "", nil, &r); err != nil {
			return r, err
		}
	}
	if r.Status != "completed" {
		return r, errors.Errorf("%s is %s", r.ID, r.Status)
	}
	return r, nil
}

// export requests an export and checks that it has each interaction exactly once. It returns the
// ids of the records.
func (l *Leaver) export(ctx context.Context, contact string, interactions []*Interaction) (subjects []string, err error) {
	var r receipt
	if err := l.API.data(ctx, http.MethodPost, "/v1/contacts/"+contact+"/export", "", struct{}{}, &r); err != nil {
		return nil, err
	}
	if r, err = l.finished(ctx, r); err != nil {
		return nil, err
	}
	records, kinds, whole := map[string]int{}, map[string]int{}, ""
	err = l.API.each(ctx, "/v1/subject-requests/"+r.ID+"/records?limit=10", func(raw json.RawMessage) error {
		var one struct {
			Kind   string
			Record struct{ ID string }
		}
		if err := json.Unmarshal(raw, &one); err != nil {
			return errors.Wrap(err, "read a record")
		}
		records[one.Record.ID]++
		kinds[one.Kind]++
		whole += string(raw)
		if one.Kind != "event" && one.Kind != "delivery" {
			subjects = append(subjects, one.Record.ID)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, kind := range []string{"contact", string(Post), string(Vote), string(Comment)} {
		if kinds[kind] != 1 {
			return nil, errors.Errorf("%s has %d records of the kind %s, and should have one", r.ID, kinds[kind], kind)
		}
	}
	if len(records) != r.Records {
		return nil, errors.Errorf("%s says %d records and has %d", r.ID, r.Records, len(records))
	}
	for _, w := range interactions {
		if w.Kind != Vote && !strings.Contains(whole, w.Words) {
			return nil, errors.Errorf("%s doesn't have the %s of %s", r.ID, w.Kind, w.Email)
		}
	}
	return subjects, nil
}

// erase erases the person, including the texts, and checks that the contact is gone.
func (l *Leaver) erase(ctx context.Context, contact string) error {
	var r receipt
	err := l.API.data(ctx, http.MethodPost, "/v1/contacts/"+contact+"/erase", "erase-"+contact, map[string]string{"text": "blank"}, &r)
	if err != nil {
		return err
	}
	if _, err := l.finished(ctx, r); err != nil {
		return err
	}
	status, err := l.API.send(ctx, http.MethodGet, "/v1/contacts/"+contact, "", nil, nil, http.StatusNotFound)
	if err == nil && status != http.StatusNotFound {
		err = errors.Errorf("%s was erased and is still there", contact)
	}
	return err
}
