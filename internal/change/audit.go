package change

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-faster/errors"
)

// audited is a line of the audit trail that is not written yet.
type audited struct {
	action   string
	resource fmt.Stringer
}

// resourceKinds maps the prefix of a resource's id to its kind in the audit trail.
var resourceKinds = map[string]string{
	"org": "organization", "usr": "member", "key": "api_key", "brd": "board", "tag": "tag", "pst": "post", "cmt": "comment",
	"chg": "changelog_entry", "ctc": "contact", "whk": "webhook", "dlv": "delivery",
	"wgs": "widget_secret", "bkf": "contact_backfill", "sub": "submission",
}

// Audit adds a line to the audit trail, in the change's transaction. The line names the operation
// as the contract does, and the resource that the request's path names or that it created. A use
// case calls Audit once it knows that it changes something. A change without a caller is the
// operator's: the service itself writes no lines.
//
// Changes by end-users, thousands a second, write no lines (docs/decisions/audit-trail.md).
func (c *Change) Audit(action string, resource fmt.Stringer) {
	c.audited = append(c.audited, audited{action, resource})
}

func (c *Change) writeAudit(ctx context.Context, a audited) error {
	id := a.resource.String()
	prefix, _, _ := strings.Cut(id, "_")
	kind, known := resourceKinds[prefix]
	if !known {
		return errors.Errorf("the audit trail has no kind for the resource %s", id)
	}
	line := c.AuditEntry.Create().SetAction(a.action).SetResourceKind(kind).SetResourceID(id)
	if c.Caller.User != nil {
		line.SetUserID(c.Caller.User.ID).SetAPIKeyID(c.Caller.Key.ID)
	}
	if err := line.Exec(ctx); err != nil {
		return errors.Wrap(err, "insert the line of the audit trail")
	}
	return nil
}
