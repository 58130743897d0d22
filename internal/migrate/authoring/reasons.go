package authoring

// reasons has the reason of each trigger, by the name of its function. A reason tells why Go code is not enough.
// `make triggers` writes the reasons into ent/migrations/triggers.md.
var reasons = map[string]string{
	"copy_revenue": "The trigger locks the contact, so a concurrent change of its revenue reaches the new vote too. " +
		"During an upgrade, programs from before the trigger insert votes without revenue.",
	"count_event": "The numbers of an organization's events have no gaps and follow the order of the commits. " +
		"During an upgrade, programs from before the trigger insert events without a number.",
	"count_revenues": "The revenue of a post is exact only if each inserted vote counts. " +
		"During an upgrade, programs from before the trigger insert votes too.",
	"count_revenues_off": "The revenue of a post is exact only if each deleted vote is subtracted. " +
		"Several statements delete votes, also those of programs from before the trigger.",
	"follow_choice": "A person's choice of e-mails must follow the contact to a new address. " +
		"During an upgrade, programs from before the trigger change addresses too.",
	"follow_contact": "Votes, comments and guests of a contact must have the hash of its current address, which identifies the person. " +
		"During an upgrade, programs from before the trigger change addresses too.",
	"keep_contact_document": "A search finds a contact only if each change of its address or name updates the search document. " +
		"Several statements change them, for single contacts and for batches.",
	"keep_post_document": "A search finds the current text only if each change of a post updates the search document. " +
		"Several statements change the title, the text and the deletion of posts.",
	"keep_provenance": "The source and the consent basis of a contact never change. " +
		"Only the database can refuse such a change by any program, or by hand.",
	"leave_tombstone": "A reader that keeps a copy learns of removed rows only from tombstones. " +
		"During an upgrade, programs from before the trigger remove rows too.",
	"leave_votes_and_comments": "Votes and comments outlive their contact, but a foreign key refuses to delete a contact that has any. " +
		"During an upgrade, programs from before the trigger delete contacts too.",
	"move_revenues": "Merges move votes to other posts, and a vote's revenue changes with its contact. " +
		"The revenue of a post is exact only if each such update counts, also those of programs from before the trigger.",
	"number_change": "A reader that keeps a copy misses a changed row without a new number. " +
		"Every statement must set it, also those of programs from before the trigger.",
	"pass_revenue_on": "The votes of a contact have copies of its revenue. " +
		"Every statement that changes the revenue must change the copies, also those of programs from before the trigger.",
}
