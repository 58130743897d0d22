package change

import (
	"context"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/internal/jobs"
	"earshot/internal/publicid"
)

// A change records an update for end-users as a row in its own transaction. The recipients are
// looked up when the update's time window ends. Without the organization's setting, or a public
// address for links, no row is written.

// NotifySubscribers has the run of an organization's e-mails look at the rows. Temporal learns nothing
// but the organization's id.
func NotifySubscribers(of publicid.Organization) jobs.Request {
	return jobs.Request{
		How: jobs.Wake, Workflow: "notify_subscribers", Signal: "updated", ID: of.String(), Argument: "organization",
		Summary: "e-mails updates to end-users who agreed", Organization: of,
	}
}

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
	c.After(NotifySubscribers(c.Caller.Organization.ID))
	return nil
}
