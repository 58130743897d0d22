package mcp_test

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"earshot/internal/event"
)

// unknown returns an id of the right kind that does not exist.
func unknown(parameter string) string {
	kinds := map[string]string{
		"boardId": "brd", "tagId": "tag", "postId": "pst", "contactId": "ctc", "webhookId": "whk", "deliveryId": "dlv",
		"commentId": "cmt", "entryId": "chg", "keyId": "key", "recoveryId": "rcv", "memberId": "usr", "subjectRequestId": "dsr", "secretId": "wgs", "submissionId": "sub",
	}
	return kinds[parameter] + "_00000000000000000000000000"
}

// flaws returns values that a schema refuses, and a few that are only unusual. A query has texts
// only.
func flaws(s *openapi3.Schema, inBody bool) (all []any) {
	long := strings.Repeat("x", 1000)
	if s.MaxLength != nil {
		long = strings.Repeat("é", int(*s.MaxLength)+1)
	}
	switch {
	case s.Type.Includes("array"):
		all = []any{[]any{"nonsense"}, []any{}, []any{"a", ""}, slices.Repeat([]any{"x"}, 101)}
	case s.Type.Includes("integer"):
		all = []any{-1, 1_000_000_000, 0}
	case s.Type.Includes("boolean"):
		all = []any{"yes"}
	case s.Type.Includes("object") && !inBody:
	case s.Type.Includes("object"):
		all = []any{7, object{"text": ""}, object{"text": long}, object{"text": 5, "json": 1}}
	default:
		all = []any{"nonsense\x00", "", long, " ", "yesterday"}
	}
	if inBody {
		all = append(all, nil, 7.5, true, "text", object{"a": 1}, []any{nil})
	}
	return all
}

func story() []step {
	return []step{
		{"getMe", object{}, ""},
		{"createBoard", object{"name": "Ideas", "description": "What you want"}, "board"},
		{"createBoard", object{"name": "More ideas"}, "other"},
		{"listBoards", object{"limit": 1}, "boards"},
		{"listBoards", object{"limit": 1, "cursor": "$boards"}, ""},
		{"getBoard", object{"boardId": "$board"}, ""},
		{"updateBoard", object{"boardId": "$board", "showRoadmap": true, "public": true}, ""},
		{"createTag", object{"boardId": "$board", "name": "Mobile", "color": "#2563eb"}, "tag"},
		{"updateTag", object{"boardId": "$board", "tagId": "$tag", "name": "Phones"}, ""},
		{"listTags", object{"boardId": "$board"}, ""},
		{"createWebhook", object{
			"url": "https://hooks.example.com/in", "events": everyEvent(),
			"description": "For the product team", "metadata": object{"camelCase": "aB", "snake_case": ""}, "maxPerSecond": 1000,
		}, "webhook"},
		{"identifyContact", object{
			"externalUserId": "u-1", "email": "Dana@Example.com", "mrrCents": 4900, "currency": "EUR",
			"metadata": object{"camelCase": object{"innerKey": json.Number("12345678901234567890")}, "snake_case": 1},
		}, "contact"},
		{"identifyContact", object{"externalUserId": "u-1", "name": "Dana", "metadata": object{"mrrCents": nil}}, ""},
		{"identifyContact", object{"externalUserId": "u-1"}, ""},
		{"identifyContacts", object{"contacts": []any{
			object{"externalUserId": "u-1", "plan": "team"}, object{"externalUserId": "u-3", "metadata": object{"camelCase": 1}},
			object{"mrrCents": -1, "currency": "EUR"}, object{"externalUserId": "u-3", "email": "nonsense"},
		}}, ""},
		{"identifyContacts", object{"contacts": []any{}}, ""},
		{"upsertContacts", object{"contacts": []any{
			object{"externalUserId": "u-1", "plan": "pro", "name": nil}, object{"externalUserId": "u-4", "metadata": object{"camelCase": 1}},
			object{"mrrCents": -1, "currency": "EUR"},
		}}, ""},
		{"createContact", object{"externalUserId": "u-2", "plan": "team"}, "second"},
		{"createContact", object{"externalUserId": "u-2"}, ""},
		{"getContact", object{"contactId": "$contact"}, ""},
		{"listContacts", object{"sort": "mrr", "limit": 1, "plan": []any{"team", "pro"}}, ""},
		{"listContacts", object{"limit": 1}, "contacts"},
		{"listContacts", object{"limit": 1, "cursor": "$contacts"}, ""},
		{"updateContact", object{"contactId": "$contact", "name": nil, "mrrCents": 100, "currency": "USD"}, ""},
		{"createPost", object{
			"boardId": "$board", "title": "Export as PDF", "contactId": "$contact", "tagIds": []any{"$tag"},
			"body": object{"text": "Weekly", "json": object{"docType": []any{object{"nodeType": nil}}}},
		}, "post"},
		{"createPost", object{"boardId": "$board", "title": "PDF reports"}, "duplicate"},
		{"listPosts", object{
			"boardId": "$board", "q": "pdf", "status": []any{"open", "planned"}, "tagIds": []any{"$tag"}, "sort": "votes",
		}, ""},
		{"listAllPosts", object{"status": []any{"open"}, "limit": 5}, ""},
		{"getPost", object{"postId": "$post"}, ""},
		{"updatePost", object{"postId": "$post", "status": "planned", "hideFromRoadmap": true}, ""},
		{"castVote", object{"postId": "$post"}, ""},
		{"castVote", object{"postId": "$post"}, ""},
		{"listVotes", object{"postId": "$post"}, ""},
		{"retractVote", object{"postId": "$post"}, ""},
		{"castVote", object{"postId": "$post", "contactId": "$contact"}, ""},
		{"castVote", object{"postId": "$post", "externalUserId": "u-9", "createContact": true}, ""},
		{"castVote", object{"postId": "$post", "contactId": "$contact", "externalUserId": "u-1"}, ""},
		{"listVotes", object{"postId": "$post", "limit": 1}, ""},
		{"retractVote", object{"postId": "$post", "externalUserId": "u-9"}, ""},
		{"createComment", object{"postId": "$post", "body": object{"text": "Me too"}}, "comment"},
		{"createComment", object{"postId": "$post", "parentId": "$comment", "body": object{"text": "And me"}}, "reply"},
		{"createComment", object{"postId": "$post", "externalUserId": "u-7", "createContact": true, "body": object{"text": "And me"}}, ""},
		{"updateComment", object{"commentId": "$comment", "body": object{"text": "Me too!", "json": object{"aB": 1}}}, ""},
		{"listComments", object{"postId": "$post"}, ""},
		{"getComment", object{"commentId": "$reply"}, ""},
		{"updatePost", object{"postId": "$duplicate", "status": "duplicate"}, ""}, // only a merge makes one
		{"mergePosts", object{"postId": "$post", "sourceIds": []any{"$duplicate"}, "If-Match": `"another"`}, ""},
		{"mergePosts", object{"postId": "$post", "sourceIds": []any{"$duplicate"}}, ""},
		{"updatePost", object{"postId": "$duplicate", "status": "open"}, ""}, // merged
		{"listContactPosts", object{"contactId": "$contact"}, ""},
		{"createChangelogEntry", object{"boardId": "$board", "title": "PDF is here", "version": "1.2"}, "entry"},
		{"updateChangelogEntry", object{"entryId": "$entry", "publishedAt": "2026-03-12T10:41:07Z"}, ""},
		{"replaceLinkedPosts", object{"entryId": "$entry", "postIds": []any{"$post"}}, ""},
		{"getChangelogEntry", object{"entryId": "$entry"}, ""},
		{"listChangelog", object{"boardId": "$board"}, ""},
	}
}

// deliveries is the second part of the story: the deliveries of the first part, keys and members.
func deliveries() []step {
	return []step{
		{"listDeliveries", object{"webhookId": "$webhook", "eventType": "post.created", "limit": 200}, "delivery"},
		{"listEvents", object{"types": []any{"post.created", "contact.created"}, "limit": 2}, ""},
		{"listEvents", object{"after": 2, "limit": 1}, ""},
		{"listEvents", object{"after": 1000}, ""},
		{"getDelivery", object{"webhookId": "$webhook", "deliveryId": "$delivery"}, ""},
		{"replayDelivery", object{"webhookId": "$webhook", "deliveryId": "$delivery"}, ""},
		{"testWebhook", object{"webhookId": "$webhook"}, ""},
		{"recoverWebhook", object{"webhookId": "$webhook", "since": "2026-03-12T10:41:07Z"}, "recovery"},
		{"recoverWebhook", object{"webhookId": "$webhook", "since": "2026-03-12T10:41:07Z"}, ""}, // one already runs
		{"getRecovery", object{"webhookId": "$webhook", "recoveryId": "$recovery"}, ""},
		{"listRecoveries", object{"webhookId": "$webhook"}, ""},
		{"updateWebhook", object{"webhookId": "$webhook", "enabled": true, "description": nil}, ""},
		{"getWebhook", object{"webhookId": "$webhook"}, ""},
		{"getWebhookHealth", object{"webhookId": "$webhook"}, ""},
		{"listWebhooks", object{}, ""},
		{"createMember", object{"email": "Kim@example.com", "name": "Kim"}, "member"},
		{"createMember", object{"email": "kim@example.com", "name": "Kim", "role": "admin"}, ""}, // the address is taken
		{"updateMember", object{"memberId": "$member", "role": "admin"}, ""},
		{"getMember", object{"memberId": "$member"}, ""},
		{"listMembers", object{"limit": 1}, "members"},
		{"listMembers", object{"limit": 1, "cursor": "$members"}, ""},
		{"createApiKey", object{"name": "Kim's", "scope": "read", "memberId": "$member"}, ""},
		{"eraseMember", object{"memberId": "$member"}, ""}, // not removed yet
		{"deleteMember", object{"memberId": "$member"}, ""},
		{"eraseMember", object{"memberId": "$member"}, ""},
		{"createApiKey", object{"name": "Spare", "scope": "read"}, "key"},
		{"rotateWebhookSecret", object{"webhookId": "$webhook", "overlapSeconds": 60}, ""},
		{"rotateApiKey", object{"keyId": "$key", "overlapSeconds": 60}, ""},
		{"revokeApiKey", object{"keyId": "$key"}, ""},
		{"listApiKeys", object{}, ""},
		{"listSubscribers", object{"limit": 1}, ""},
		{"exportContact", object{"contactId": "$contact"}, "request"},
		{"getSubjectRequest", object{"subjectRequestId": "$request"}, ""},
		{"listSubjectRecords", object{"subjectRequestId": "$request"}, ""}, // it still runs
		{"exportContact", object{"contactId": "$contact"}, ""},             // returns the running one
		{"listSubjectRecords", object{"subjectRequestId": "$request", "limit": 100}, ""},
		{"eraseContact", object{"contactId": "$second", "text": "blank"}, ""},
		{"eraseContact", object{"contactId": "$second"}, ""}, // already erased
		{"listAudit", object{"limit": 5}, "audit"},
		{"listAudit", object{"limit": 5, "cursor": "$audit"}, ""},
		{"listAudit", object{"actor": "operator", "actions": []any{"createApiKey", "createMember"}}, ""},
		{"listAudit", object{"resource": "$second", "since": "2026-03-12T10:41:07Z"}, ""},
		{"createWidgetSecret", object{}, "secret"},
		{"createWidgetSecret", object{}, ""},
		{"createWidgetSecret", object{}, ""}, // two already exist
		{"listWidgetSecrets", object{"limit": 1}, ""},
		{"deleteWidgetSecret", object{"secretId": "$secret"}, ""},
		{"replaceWidgetOrigins", object{"origins": []any{"https://app.example.com", "http://localhost:3000"}}, ""},
		{"replaceWidgetOrigins", object{"origins": []any{"http://app.example.com"}}, ""},
		{"getWidgetOrigins", object{}, ""},
		{"listSubmissions", object{"boardId": "$board", "limit": 1}, "submission"},
		{"getSubmission", object{"submissionId": "$submission"}, ""},
		{"approveSubmission", object{"submissionId": "$submission"}, ""},
		{"rejectSubmission", object{"submissionId": "$submission"}, ""}, // already approved
		{"updateOrganization", object{"blockedWords": []any{"casino", "Casino"}, "publicClosed": true, "color": nil}, ""},
		{"getOrganization", object{}, ""},
	}
}

func ending() []step {
	return []step{
		{"deleteComment", object{"commentId": "$reply"}, ""},
		{"deleteTag", object{"boardId": "$board", "tagId": "$tag"}, ""},
		{"updatePost", object{"postId": "$post", "title": "Late", "If-Match": `"another"`}, ""},
		{"updatePost", object{"postId": "$post", "title": "Late", "If-Match": "*"}, ""},
		{"deletePost", object{"postId": "$post"}, ""},
		{"deleteChangelogEntry", object{"entryId": "$entry"}, ""},
		{"deleteContact", object{"contactId": "$contact"}, ""},
		{"deleteWebhook", object{"webhookId": "$webhook"}, ""},
		{"deleteBoard", object{"boardId": "$board", "confirmName": "Ideas"}, ""},
		{"deleteBoard", object{"boardId": "$other", "confirmName": "More ideas"}, ""},
	}
}

func everyEvent() []any {
	all := make([]any, len(event.Types))
	for i, kind := range event.Types {
		all[i] = string(kind)
	}
	return all
}
