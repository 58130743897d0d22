package change

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/internal/publicid"
)

// A change records an update for end-users as a row in its own transaction. The recipients are
// looked up when the update's time window ends. Without the organization's setting, or a public
// address for links, no row is written.

// PostMoved records, for a post's subscribers, that its status changed.
func (c *Change) PostMoved(ctx context.Context, id publicid.Post, previous string) error {
	return c.tell(ctx, c.SubscriberUpdate.Create().SetPostID(id).SetPreviousStatus(previous))
}

// EntryPublished records an entry for the changelog's subscribers.
func (c *Change) EntryPublished(ctx context.Context, id publicid.ChangelogEntry) error {
	return c.tell(ctx, c.SubscriberUpdate.Create().SetEntryID(id))
}

// TellsSubscribers reports whether an organization sends e-mails to end-users. This needs the
// organization's own setting and the operator's permission.
func TellsSubscribers(o *db.Organization) bool { return o.SubscriberMails && o.SubscriberMailsAllowed }

func (c *Change) tell(ctx context.Context, row *db.SubscriberUpdateCreate) error {
	if !c.settings.SubscriberMails || !TellsSubscribers(c.Caller.Organization) {
		return nil
	}
	if err := row.Exec(ctx); err != nil {
		return errors.Wrap(err, "insert an update for end-users")
	}
	c.tells = true
	return nil
}
