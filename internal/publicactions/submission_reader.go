package publicactions

import (
	"slices"

	"earshot/ent/db"
	"earshot/ent/db/predicate"
	"earshot/ent/db/submission"
	"earshot/internal/page"
)

// listedSubmission is a submission without the personal data.
type listedSubmission struct {
	db.Submission
	page.Extent
}

// submissionPages reads pages of submissions without the personal data.
var submissionPages = page.NewReader[listedSubmission, predicate.Submission](submission.Table,
	slices.DeleteFunc(slices.Clone(submission.Columns), func(column string) bool { return column == submission.FieldPersonSealed }),
	[]string{submission.FieldBodyText})
