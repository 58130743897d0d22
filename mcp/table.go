package mcp

// tool is one of the 18 tools. It reaches one operation, or one of several by its argument action.
type tool struct {
	name, title string
	// description explains the use of the tool and its result.
	description string
	actions     []action
	// destroys is true if the tool can overwrite or remove data. Tools that read leave it unset.
	destroys bool
	// repeats is true if a second call with the same arguments changes nothing further.
	repeats bool
	// standard makes the first action the default, as in tools that read.
	standard bool
	// sends is true if the tool sends data to a server that the caller chooses.
	sends bool
}

// action is one action of a tool: an operation of the contract, by its operationId. The first
// action is the default if the tool reads or is standard.
type action struct{ name, operation string }

// Reached is an operation of the contract, with the tool and the action that reach it.
type Reached struct{ Tool, Action, Operation string }

// Table returns the table of tools, with a row for each action.
func Table() (rows []Reached) {
	for _, t := range table {
		for _, a := range t.actions {
			rows = append(rows, Reached{t.name, a.name, a.operation})
		}
	}
	return rows
}

// The table of tools has every operation of the contract once. A test reports missing ones.
var table = []tool{
	// Contacts.
	{
		name: "identify_contact", title: "Identify contacts", repeats: true, standard: true,
		description: "Use this when an end-user of yours was seen: it makes the contact with your own id for them, or " +
			"fills in missing traits and notes that they were seen. It never overwrites a trait that has a value; " +
			"update_contact does. Returns the contact, and whether it was created. Action batch does so for up to 100 at once, " +
			"and returns the same, or an error, for each.",
		actions: []action{{"identify", "identifyContact"}, {"batch", "identifyContacts"}},
	},
	{
		name: "create_contact", title: "Create a contact, or an export of all about it", standard: true,
		description: "Use this to add an end-user who must not be there yet; identify_contact is for when you don't " +
			"know. Returns the new contact, or ERR_CONFLICT if the external_user_id is taken. When a person asks for their " +
			"data, action export collects it all and returns a receipt, which get_contact reads; it is for keys of owners and admins.",
		actions: []action{{"create", "createContact"}, {"export", "exportContact"}},
	},
	{
		name: "get_contact", title: "Read a contact, or an export of all about it",
		description: "Use this to read one contact by its id (ctc_…); to find it by an address, a name or your own id, use " +
			"list_contacts. Action contact returns the contact with how many posts, votes and comments it has; request " +
			"the receipt of an export or an erasure of a person (dsr_…), with its progress, and records a page of the records " +
			"of a completed export.",
		actions: []action{{"contact", "getContact"}, {"request", "getSubjectRequest"}, {"records", "listSubjectRecords"}},
	},
	{
		name: "list_contacts", title: "List and find contacts",
		description: "Use this to find contacts: by text in the name or address (q), e-mail address, your own id, plan, " +
			"or when they last changed; sort by mrr to see who pays most. Returns a page of contacts and next_cursor. Action " +
			"subscribers returns the contacts who may get e-mail updates, with their choices.",
		actions: []action{{"contacts", "listContacts"}, {"subscribers", "listSubscribers"}},
	},
	{
		name: "update_contact", title: "Change contacts", destroys: true, repeats: true, standard: true,
		description: "Use this to overwrite traits of a contact: a given trait is set, null empties it, and the others " +
			"stay. metadata is replaced as a whole, so read it first. Returns the contact. Action batch does so by your own ids " +
			"for up to 100 at once, creates contacts that are missing, and returns created and the contact, or an error, for each.",
		actions: []action{{"update", "updateContact"}, {"batch", "upsertContacts"}},
	},
	{
		name: "delete_contact", title: "Delete or erase a contact", destroys: true,
		description: "Use this to remove a contact for good; its posts stay, without it. When a person asks to be forgotten, " +
			"action erase also erases them from hashes, events and exports (text: blank blanks their posts and comments). " +
			"There is no way back. delete returns the id, and erase a receipt, which get_contact reads. Erase is for keys " +
			"of owners and admins.",
		actions: []action{{"delete", "deleteContact"}, {"erase", "eraseContact"}},
	},
	{
		name: "list_contact_posts", title: "List a contact's posts",
		description: "Use this to see what one end-user asked for. Returns a page of posts and next_cursor.",
		actions:     []action{{"", "listContactPosts"}},
	},
	// Reading.
	{
		name: "list_boards", title: "Look around: the account, boards and tags, posts of all boards, settings",
		description: "Start here. Action boards returns the boards, whose ids most other tools want; board reads one; " +
			"tags lists a board's tags; posts lists the posts of all boards, with sort updated to find changes; me returns " +
			"the key's member, its scope, and the organization's plan; organization the settings of its web pages.",
		actions: []action{
			{"boards", "listBoards"}, {"board", "getBoard"}, {"tags", "listTags"}, {"posts", "listAllPosts"}, {"me", "getMe"},
			{"organization", "getOrganization"},
		},
	},
	{
		name: "search_posts", title: "Search and list posts, and submissions to review",
		description: "Use this to find the posts of a board (action posts): by words in title and text (q), status, tags or contact; " +
			"sort by newest, votes, active or revenue (of the voters, in a currency). Search before you create a post, to avoid duplicates. " +
			"Returns a page of posts with their counts, and next_cursor. Action submissions lists posts and comments of end-users that wait " +
			"until you approve or reject them with manage_post, oldest first; submission reads one (sub_…).",
		actions: []action{{"posts", "listPosts"}, {"submissions", "listSubmissions"}, {"submission", "getSubmission"}},
	},
	{
		name: "get_post", title: "Read a post, its comments or its votes",
		description: "Use this to read one post by its id (pst_…). Action post returns the post with its text and " +
			"counts, comments a page of its comments in threads, comment one comment by its id (cmt_…), votes a page of its " +
			"votes with the voters and their mrr.",
		actions: []action{
			{"post", "getPost"}, {"comments", "listComments"}, {"comment", "getComment"}, {"votes", "listVotes"},
		},
	},
	{
		name: "list_changelog", title: "Read the changelog",
		description: "Use this to see a board's announcements. Action entries returns a page of entries, drafts and " +
			"scheduled ones too; entry reads one by its id (chg_…), with its text and linked posts.",
		actions: []action{{"entries", "listChangelog"}, {"entry", "getChangelogEntry"}},
	},
	{
		name: "list_webhooks", title: "Look at webhooks, deliveries, recoveries, events, the audit trail, API keys, members and the widget",
		description: "Use this to see how other systems are connected, and why a webhook fails. Action webhooks lists " +
			"them, webhook reads one, health summarizes its last day; deliveries returns a webhook's log (filter status " +
			"failed), delivery one of them with its payload and every attempt; recoveries and recovery show the progress of a " +
			"replay of failures; events reads the organization's events, in order, from after on; audit lists " +
			"changes with member and key; api_keys lists the keys, without the keys themselves; members lists the organization's members, member reads one; widget_secrets lists " +
			"the widget's secrets, without values; widget_origins the origins of pages that may hold it.",
		actions: []action{
			{"webhooks", "listWebhooks"}, {"webhook", "getWebhook"}, {"health", "getWebhookHealth"}, {"deliveries", "listDeliveries"},
			{"delivery", "getDelivery"}, {"recoveries", "listRecoveries"}, {"recovery", "getRecovery"},
			{"events", "listEvents"}, {"audit", "listAudit"}, {"api_keys", "listApiKeys"}, {"members", "listMembers"}, {"member", "getMember"},
			{"widget_secrets", "listWidgetSecrets"}, {"widget_origins", "getWidgetOrigins"},
		},
	},
	// Writing.
	{
		name: "manage_board", title: "Manage boards, tags and settings", destroys: true,
		description: "Use this to set up the collection of feedback: create, update or delete a board, or a tag of a " +
			"board. Only an empty board can be deleted, with its name as confirm_name. Action update_organization changes " +
			"settings of all boards: closes them for the public, blocks words. Returns the board, tag or organization, or the " +
			"id of the deleted one.",
		actions: []action{
			{"create_board", "createBoard"}, {"update_board", "updateBoard"}, {"delete_board", "deleteBoard"},
			{"create_tag", "createTag"}, {"update_tag", "updateTag"}, {"delete_tag", "deleteTag"},
			{"update_organization", "updateOrganization"},
		},
	},
	{
		name: "manage_post", title: "Manage posts", destroys: true,
		description: "Use this to write feedback down and to triage it: create a post on a board; update its status, " +
			"tags, title or text; merge duplicates (source_ids) into the post that stays (post_id), with their votes and " +
			"comments; delete one. approve_submission publishes an end-user's post or comment that waits, " +
			"reject_submission removes it for good (also_from: and all others of its author or network); search_posts lists them. Webhooks report new posts and changes of " +
			"status. Returns the post.",
		actions: []action{
			{"create", "createPost"}, {"update", "updatePost"}, {"delete", "deletePost"}, {"merge", "mergePosts"},
			{"approve_submission", "approveSubmission"}, {"reject_submission", "rejectSubmission"},
		},
	},
	{
		name: "vote_post", title: "Vote for a post", destroys: true, repeats: true,
		description: "Use this to cast a vote for a post, or to retract it: that of an end-user (contact_id, or your own " +
			"external_user_id, with create_contact if they may be new), else that of the key's member. Repeating either " +
			"changes nothing. Returns the vote, and whether it was cast just now.",
		actions: []action{{"cast", "castVote"}, {"retract", "retractVote"}},
	},
	{
		name: "manage_comment", title: "Write, edit and delete comments", destroys: true,
		description: "Use this to comment on a post as the key's member, or as an end-user (contact_id, or your own " +
			"external_user_id, with create_contact if they may be new), to answer a comment (parent_id; replies nest " +
			"one level), to edit a comment while it is new, or to delete one, which leaves its replies. Returns the " +
			"comment.",
		actions: []action{{"create", "createComment"}, {"update", "updateComment"}, {"delete", "deleteComment"}},
	},
	{
		name: "manage_changelog", title: "Manage the changelog", destroys: true,
		description: "Use this to announce shipped work: create or update an entry, publish or schedule it with " +
			"published_at, link the posts that it is about (link_posts replaces the whole set), or delete it. Returns " +
			"the entry.",
		actions: []action{
			{"create", "createChangelogEntry"}, {"update", "updateChangelogEntry"}, {"link_posts", "replaceLinkedPosts"},
			{"delete", "deleteChangelogEntry"},
		},
	},
	{
		name: "manage_webhook", title: "Manage webhooks, API keys, members and the widget", destroys: true, sends: true,
		description: "Use this to connect other systems: create, update, enable or delete a webhook, rotate its secret, send it a test, " +
			"replay one delivery, or recover all failures since a moment. Also makes, rotates and revokes API " +
			"keys, adds, changes and removes members (removing one revokes their keys), erases the name and address of a removed member for good, and makes and deletes the widget's secrets " +
			"and sets the origins of pages that may hold it. Secrets of new webhooks and keys are in this answer only: hand them on, don't repeat them. " +
			"Returns the webhook, delivery, recovery, key or member.",
		actions: []action{
			{"create", "createWebhook"}, {"update", "updateWebhook"}, {"delete", "deleteWebhook"},
			{"rotate_secret", "rotateWebhookSecret"}, {"test", "testWebhook"}, {"replay", "replayDelivery"}, {"recover", "recoverWebhook"},
			{"create_key", "createApiKey"}, {"rotate_key", "rotateApiKey"}, {"revoke_key", "revokeApiKey"},
			{"add_member", "createMember"}, {"update_member", "updateMember"}, {"remove_member", "deleteMember"}, {"erase_member", "eraseMember"},
			{"create_widget_secret", "createWidgetSecret"}, {"delete_widget_secret", "deleteWidgetSecret"},
			{"set_widget_origins", "replaceWidgetOrigins"},
		},
	},
}
