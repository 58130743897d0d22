package main

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/go-faster/errors"
	"github.com/spf13/cobra"

	"earshot/ent/db"
	"earshot/internal/access"
)

func newAuditCommand() *cobra.Command {
	var (
		org, actor, resource, since, until string
		actions                            []string
		limit                              int
		asJSON                             bool
	)
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show who changed what in an organization, newest first",
		Args:  cobra.NoArgs,
	}
	cmd.RunE = inOrganization(&org, func(cmd *cobra.Command, _ []string, a *admin) error {
		given := func(flag string, value *string) *string {
			if !cmd.Flags().Changed(flag) {
				return nil
			}
			return value
		}
		q := access.AuditQuery{Actor: given("actor", &actor), Resource: given("resource", &resource)}
		if len(actions) > 0 {
			q.Actions = &actions
		}
		var err error
		if q.Since, err = momentOf("since", given("since", &since)); err != nil {
			return err
		}
		if q.Until, err = momentOf("until", given("until", &until)); err != nil {
			return err
		}
		entries, err := a.auditTrail(cmd, q, limit)
		if err != nil {
			return err
		}
		if asJSON {
			all := make([]map[string]any, len(entries))
			for i, e := range entries {
				all[i] = auditJSON(e)
			}
			return printJSON(cmd.OutOrStdout(), all)
		}
		t := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "WHEN\tWHO\tKEY\tACTION\tRESOURCE")
		for _, e := range entries {
			who, key := access.Operator, ""
			if e.UserID != nil {
				who, key = e.UserID.String(), e.APIKeyID.String()
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", moment(&e.CreatedAt), who, key, e.Action, e.ResourceID)
		}
		return t.Flush()
	})
	f := cmd.Flags()
	f.StringVar(&org, "org", "", "id of the organization; may be left out when there is only one")
	f.StringVar(&actor, "actor", "", "only operations of this actor: a member (usr_…), a key (key_…), or operator")
	f.StringSliceVar(&actions, "actions", nil, "only these operations, as exportContact,eraseContact")
	f.StringVar(&resource, "resource", "", "only operations on the resource with this id")
	f.StringVar(&since, "since", "", "only from this moment on, as 2026-03-12T00:00:00Z")
	f.StringVar(&until, "until", "", "only before this moment")
	f.IntVar(&limit, "limit", 100, "how many at most; 0 is all")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// auditTrail reads up to limit entries, page by page. A limit of 0 reads all.
func (a *admin) auditTrail(cmd *cobra.Command, q access.AuditQuery, limit int) (all []*db.AuditEntry, err error) {
	for {
		p, err := a.access.Audit(cmd.Context(), q)
		if err != nil {
			return nil, err
		}
		all = append(all, p.Items...)
		if limit > 0 && len(all) >= limit {
			return all[:limit], nil
		}
		if q.Cursor = p.NextCursor; q.Cursor == nil {
			return all, nil
		}
	}
}

// momentOf parses the time in a flag. A flag that isn't given yields nil.
func momentOf(flag string, text *string) (*time.Time, error) {
	if text == nil {
		return nil, nil
	}
	at, err := time.Parse(time.RFC3339, *text)
	if err != nil {
		return nil, errors.Errorf("--%s %s is no moment as 2026-03-12T00:00:00Z", flag, *text)
	}
	return &at, nil
}

func auditJSON(e *db.AuditEntry) map[string]any {
	actor := map[string]any{"kind": access.Operator, "memberId": e.UserID, "apiKeyId": e.APIKeyID}
	if e.UserID != nil {
		actor["kind"] = "member"
	}
	return map[string]any{
		"id": e.ID, "action": e.Action, "actor": actor, "createdAt": e.CreatedAt,
		"resource": map[string]any{"kind": e.ResourceKind, "id": e.ResourceID},
	}
}
