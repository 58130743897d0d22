package change

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-faster/errors"
)

// audited is a line of the audit trail that is to be written.
type audited struct {
	action   string
	resource fmt.Stringer
}

// resourceKinds are what lines of the audit trail are about, by what their ids begin with.
var resourceKinds = map[string]string{
	"org": "organization", "usr": "member", "key": "api_key", "brd": "board", "tag": "tag", "pst": "post", "cmt": "comment",
	"chg": "changelog_entry", "ctc": "contact", "whk": "webhook", "dlv": "delivery",
	"wgs": "widget_secret", "bkf": "contact_backfill", "sub": "submission",
}

// Audit leaves a line in the audit trail, in the change's transaction: the operation, by its name in
// the contract, and the resource that its path names or that it made. A use case calls it once it
// knows that it changes something. Without a caller it is the operator who acts: the service itself
// leaves no lines.
//
// What end-users do at thousands a second leaves none: docs/decisions/audit-trail.md says why.
func (c *Change) Audit(action string, resource fmt.Stringer) {
	c.audited = append(c.audited, audited{action, resource})
}

func (c *Change) writeAudit(ctx context.Context, a audited) error {
	id := a.resource.String()
	prefix, _, _ := strings.Cut(id, "_")
	kind, known := resourceKinds[prefix]
	if !known {
		return errors.Errorf("the audit trail has no name for what %s is", id)
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
