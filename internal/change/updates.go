package change

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/internal/publicid"
)

// What a change has end-users be told of by e-mail is a row in its own transaction. Who they are is
// looked up when its window ends. Without the organization's setting, or an address for links,
// nothing is written.

// PostMoved has those who care for a post be told that its status was another one.
func (c *Change) PostMoved(ctx context.Context, id publicid.Post, previous string) error {
	return c.tell(ctx, c.SubscriberUpdate.Create().SetPostID(id).SetPreviousStatus(previous))
}

// EntryPublished has those who follow the changelog be told of an entry.
func (c *Change) EntryPublished(ctx context.Context, id publicid.ChangelogEntry) error {
	return c.tell(ctx, c.SubscriberUpdate.Create().SetEntryID(id))
}

// TellsSubscribers reports whether an organization sends e-mails to end-users: its own setting and the
// operator's permission are both needed.
func TellsSubscribers(o *db.Organization) bool { return o.SubscriberMails && o.SubscriberMailsAllowed }

func (c *Change) tell(ctx context.Context, row *db.SubscriberUpdateCreate) error {
	if !c.settings.SubscriberMails || !TellsSubscribers(c.Caller.Organization) {
		return nil
	}
	if err := row.Exec(ctx); err != nil {
		return errors.Wrap(err, "insert what end-users are to be told of")
	}
	c.tells = true
	return nil
}
