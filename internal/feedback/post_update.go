package feedback

import (
	"context"
	"slices"
	"strings"

	"entgo.io/ent/dialect/sql/sqlgraph"
	"github.com/go-faster/errors"
	"github.com/oapi-codegen/nullable"

	"earshot/ent/db"
	"earshot/ent/db/post"
	"earshot/ent/db/posttag"
	"earshot/internal/change"
	"earshot/internal/contacts"
	"earshot/internal/event"
	"earshot/internal/postgres"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/slug"
)

// PostPatch has the changes to a post. A field that is nil or left out stays as it is.
type PostPatch struct {
	Title           *string
	Slug            *string
	Status          *string
	Body            *Body
	HideFromRoadmap *bool
	// A null ContactID removes the contact.
	ContactID nullable.Nullable[string]
	// By names the contact by its external id instead.
	By     contacts.Person
	TagIDs *[]string
}

// Status is the status of a post.
type Status = post.Status

// Statuses are all statuses, in the order of a post's progress.
var Statuses = []Status{
	post.StatusOpen, post.StatusUnderReview, post.StatusPlanned, post.StatusInProgress, post.StatusShipped,
	post.StatusDeclined, post.StatusDuplicate,
}

var statusWords = func() string {
	words := make([]string, len(Statuses))
	for i, s := range Statuses {
		words[i] = string(s)
	}
	return "must be one of " + strings.Join(words, ", ")
}()

// checkedPatch is a PostPatch with its ids parsed.
type checkedPatch struct {
	PostPatch
	contact *publicid.Contact
	tags    []publicid.Tag
}

func (in PostPatch) check() (checkedPatch, error) {
	var bad problem.Fields
	out := checkedPatch{PostPatch: in}
	if in.Title != nil {
		trimmed := strings.TrimSpace(*in.Title)
		out.Title = &trimmed
		bad.Shown("title", trimmed, 1, maxTitle)
	}
	if in.Slug != nil {
		slug.Check(&bad, *in.Slug, maxPostSlug)
	}
	if in.Status != nil && post.StatusValidator(post.Status(*in.Status)) != nil {
		bad.Add("status", "enum", "%s", statusWords)
	}
	if in.Body != nil {
		in.Body.check(&bad, 0)
	}
	change.Given(in.ContactID, func(v string) {
		id := publicid.Read[publicid.Contact](v)
		out.contact = &id
	})
	in.By.Check(&bad)
	if in.By.ExternalUserID != nil && in.ContactID.IsSpecified() {
		contacts.Either(&bad)
	}
	if in.TagIDs != nil {
		out.tags = tagIDs(&bad, *in.TagIDs)
	}
	return out, bad.Err()
}

// UpdatePost changes the fields in the patch only, so patches of different fields do not undo each
// other. A new status records post.status_changed. A request that sends back the values that it
// read changes nothing. A new status of a merged post is problem.Conflict.
func (s *Service) UpdatePost(ctx context.Context, id publicid.Post, in PostPatch, q change.Request[*Post]) (*Post, error) {
	patch, err := in.check()
	if err != nil {
		return nil, err
	}
	return change.Run(ctx, s.changes, q, func(c *change.Change) (*Post, error) {
		old, err := lockPost(ctx, c, id)
		if err != nil {
			return nil, err
		}
		changed := &Post{Post: old}
		if changed.TagIDs, err = tagsOf(ctx, c.PostTag, id); err != nil {
			return nil, err
		}
		if err := q.CheckIfMatch(c, &Post{Post: old, TagIDs: changed.TagIDs}); err != nil {
			return nil, err
		}
		if err := mustTakeStatus(old, patch.Status); err != nil {
			return nil, err
		}
		retagged, err := retag(ctx, c, old, patch, changed)
		if err != nil {
			return nil, err
		}
		update := c.Post.UpdateOne(old)
		if err := s.patchPost(ctx, c, update, old, patch); err != nil {
			return nil, err
		}
		if !retagged && change.Unchanged(update.Mutation()) {
			return changed, nil
		}
		c.Audit("updatePost", id)
		at := postgres.Now()
		changed.Post, err = update.SetUpdatedAt(at).SetLastActivityAt(at).Save(ctx)
		if sqlgraph.IsUniqueConstraintError(err) {
			return nil, slugTaken()
		}
		if err != nil {
			return nil, errors.Wrap(err, "update the post")
		}
		if changed.Status == old.Status {
			return changed, nil
		}
		if err := c.PostMoved(ctx, id, string(old.Status)); err != nil {
			return nil, err
		}
		return changed, c.Record(event.PostStatusChanged, &event.PostStatusChangedPayload{
			BoardHead: event.BoardHead{BoardID: old.BoardID}, Post: eventPost(changed.Post), PreviousStatus: string(old.Status),
		})
	})
}

// mustTakeStatus keeps status and mergedIntoId in step: only a merge makes a post a duplicate, and a
// merged post stays one. A post whose merge target was deleted is a duplicate that may become
// anything else.
func mustTakeStatus(old *db.Post, wanted *string) error {
	switch {
	case wanted == nil || *wanted == string(old.Status):
		return nil
	case old.MergedIntoID != nil:
		return problem.AlreadyMerged.Problem().With("mergedIntoId", old.MergedIntoID)
	case *wanted == string(post.StatusDuplicate):
		return problem.Invalid("status", "merge",
			"can't be set to duplicate; merge the post with POST /v1/posts/{id}/merge, with the id of the post that stays")
	}
	return nil
}

// patchPost sets the fields that differ in the update.
func (s *Service) patchPost(ctx context.Context, c *change.Change, update *db.PostUpdateOne, old *db.Post, patch checkedPatch) error {
	change.Differs(patch.Title, old.Title, update.SetTitle)
	change.Differs(patch.Slug, old.Slug, update.SetSlug)
	change.Differs((*post.Status)(patch.Status), old.Status, update.SetStatus)
	change.Differs(patch.HideFromRoadmap, old.HideFromRoadmap, update.SetHideFromRoadmap)
	if patch.Body != nil {
		patchBody(update, old, *patch.Body)
	}
	if patch.By.ExternalUserID == nil && (!patch.ContactID.IsSpecified() || change.Same(patch.contact, old.ContactID)) {
		return nil
	}
	from, err := s.givenBy(ctx, c, patch.contact, patch.By)
	if err != nil || change.Same(from, old.ContactID) {
		return err
	}
	change.OrEmpty(from, update.SetContactID, update.ClearContactID)
	return nil
}

func patchBody(update *db.PostUpdateOne, old *db.Post, body Body) {
	change.Differs(&body.Text, old.BodyText, update.SetBodyText)
	patchDocument(body, old.BodyJSON, update.SetBodyJSON, update.ClearBodyJSON)
}

// retag replaces the post's tags if the patch has different ones.
func retag(ctx context.Context, c *change.Change, old *db.Post, patch checkedPatch, changed *Post) (bool, error) {
	if patch.TagIDs == nil {
		return false, nil
	}
	wanted, err := mustHaveTags(ctx, c, old.BoardID, patch.tags)
	if err != nil {
		return false, err
	}
	if slices.Equal(wanted, changed.TagIDs) {
		return false, nil
	}
	if _, err := c.PostTag.Delete().Where(posttag.PostID(old.ID)).Exec(ctx); err != nil {
		return false, errors.Wrap(err, "take the tags off")
	}
	changed.TagIDs = wanted
	return true, tagPost(ctx, c, old.ID, wanted)
}
