package workflows

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"earshot/activities"
	"earshot/internal/publicid"
)

// MailAdminsName is the workflow that mails the admins about a disabled webhook.
const MailAdminsName = "mail_admins"

// MailAdminsParams names a disabled webhook and the admins to notify.
type MailAdminsParams struct {
	Webhook publicid.Webhook `json:"webhook"`
	Admins  []publicid.User  `json:"admins"`
}

// MailAdmins mails each admin that a webhook was disabled. If an e-mail can't be sent, the run
// fails after all others are sent.
func MailAdmins(ctx workflow.Context, p MailAdminsParams) error {
	mailing := workflow.WithActivityOptions(ctx, mailRound)
	mails := make([]workflow.Future, len(p.Admins))
	for i, admin := range p.Admins {
		mails[i] = workflow.ExecuteActivity(mailing, activities.MailAdminName, activities.MailAdminParams{
			Webhook: p.Webhook, Admin: admin, ID: fmt.Sprintf("%s.%s", workflow.GetInfo(ctx).WorkflowExecution.RunID, admin),
		})
	}
	told, failed := 0, 0
	for _, mail := range mails {
		var result activities.MailResult
		if err := mail.Get(ctx, &result); err != nil {
			failed++
		}
		if result.Sent {
			told++
		}
		workflow.SetCurrentDetails(ctx, fmt.Sprintf("%s is disabled. Told **%d of %d** admins.", p.Webhook, told, len(mails)))
	}
	if failed > 0 {
		return temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("%d of %d admins could not be told", failed, len(mails)), "MailNotSent", nil)
	}
	return nil
}
