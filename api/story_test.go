package api_test

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"earshot/internal/event"
	"earshot/internal/testkit/apptest"
)

// story records the operations that were used, and their statuses.
type story struct {
	*apptest.Tenant
	t    *testing.T
	ids  map[string]string
	told map[string]bool
	// order are the operations in the order of their use.
	order []string
}

// tell runs an operation of the contract on the resources of earlier steps, and requires the
// status.
func (s *story) tell(operationID string, status int, body any) apptest.Answer {
	s.t.Helper()
	for _, o := range load(s.t).operations() {
		if o.OperationID != operationID {
			continue
		}
		a := s.exactly(o, body)
		require.Equal(s.t, status, a.Status, "%s: %s", operationID, a.Raw)
		s.told[operationID+" "+strconv.Itoa(status)] = true
		s.order = append(s.order, operationID)
		return a
	}
	require.Fail(s.t, "the contract has no operation "+operationID)
	return apptest.Answer{}
}

// exactly sends a request. If the operation takes an Idempotency-Key, it sends the request again
// with the same key. The answer must then be the same, and nothing may change.
func (s *story) exactly(o operation, body any) apptest.Answer {
	s.t.Helper()
	target := o.filled(s.t, s.ids)
	if o.takes("If-None-Match") {
		s.notModified(target)
	}
	if !o.takes("Idempotency-Key") {
		return s.Do(s.t, o.method, target, body)
	}
	key := []string{"Idempotency-Key", uuid.NewString()}
	if o.takes("If-Match") {
		key = append(key, "If-Match", s.mismatched(o.method, target, body))
	}
	first := s.Do(s.t, o.method, target, body, key...)
	require.Empty(s.t, first.Header.Get("Idempotent-Replayed"), o.OperationID)
	unchanged := s.Watch(s.t)
	again := s.Do(s.t, o.method, target, body, key...)
	require.Equal(s.t, first.Status, again.Status, o.OperationID)
	require.Equal(s.t, string(first.Raw), string(again.Raw), o.OperationID)
	require.Equal(s.t, "true", again.Header.Get("Idempotent-Replayed"), o.OperationID)
	if tag := first.Header.Get("ETag"); tag != "" && o.takes("If-Match") {
		require.Equal(s.t, s.etag(target), tag, "%s: %s", o.OperationID, first.Raw)
	}
	unchanged(s.t)
	return first
}

// notModified reads an unchanged resource again.
func (s *story) notModified(target string) {
	s.t.Helper()
	tag := s.Do(s.t, http.MethodGet, target, nil).Header.Get("ETag")
	again := s.Do(s.t, http.MethodGet, target, nil, "If-None-Match", tag)
	require.Equal(s.t, http.StatusNotModified, again.Status, target)
	require.Empty(s.t, again.Raw)
	require.Equal(s.t, tag, again.Header.Get("ETag"))
}

// mismatched sends a request with the wrong If-Match, which changes nothing. It returns the tag of
// the current resource.
func (s *story) mismatched(method, target string, body any) string {
	s.t.Helper()
	unchanged := s.Watch(s.t)
	refused := s.Do(s.t, method, target, body, "If-Match", `"another"`)
	require.Equal(s.t, http.StatusPreconditionFailed, refused.Status, "%s %s: %s", method, target, refused.Raw)
	require.Equal(s.t, "ERR_PRECONDITION_FAILED", refused.Code())
	unchanged(s.t)
	return s.etag(target)
}

// aspect is the end of a path that is about the resource before it.
var aspect = regexp.MustCompile("/(linked-posts|merge|approve|export|erase|rotate-secret)$")

// etag returns the tag of the resource that a write changes.
func (s *story) etag(target string) string {
	s.t.Helper()
	if strings.Contains(target, "/tags/") { // a tag can't be read alone
		return s.Do(s.t, http.MethodPatch, target, object{}).Header.Get("ETag")
	}
	return s.Do(s.t, http.MethodGet, aspect.ReplaceAllString(target, ""), nil).Header.Get("ETag")
}

// make is tell for a creation. Later steps use the new resource.
func (s *story) make(operationID string, status int, parameter string, body any) {
	s.t.Helper()
	s.ids[parameter] = s.tell(operationID, status, body).Data()["id"].(string)
}

// The transport checks the answers against the contract.
func TestEveryOperationOfTheContractIsServedWithEverySuccessThatItPromisesAndRepeatedExactly(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.whole()
	require.Equal(t, promises(t), s.told)
}

func newStory(t *testing.T) *story {
	t.Helper()
	return &story{Tenant: apptest.Start(t, apptest.Options{}).Tenant(t), t: t, ids: map[string]string{}, told: map[string]bool{}}
}

// whole uses every operation.
func (s *story) whole() {
	s.t.Helper()
	s.begin()
	s.goOn()
}

// begin makes the resources for the other steps.
func (s *story) begin() {
	s.t.Helper()
	s.tell("getMe", 200, nil)
	s.tell("getOrganization", 200, nil)
	s.tell("updateOrganization", 200, object{"blockedWords": []string{"casino"}, "color": "#0F766E"})
	s.make("createBoard", 200, "boardId", object{"name": "Feature requests"})
	s.tell("listBoards", 200, nil)
	s.tell("getBoard", 200, nil)
	s.tell("updateBoard", 200, object{"showRoadmap": false, "public": true})
	s.make("createApiKey", 201, "keyId", object{"name": "Import", "scope": "read"})
	s.make("rotateApiKey", 201, "keyId", object{"overlapSeconds": 60})
	s.tell("listApiKeys", 200, nil)
	s.tell("revokeApiKey", 200, nil)
	s.make("createMember", 201, "memberId", object{"email": "Kim@example.com", "name": "Kim"})
	s.tell("listMembers", 200, nil)
	s.tell("getMember", 200, nil)
	s.tell("updateMember", 200, object{"role": "admin"})
	s.tell("deleteMember", 200, nil)
	s.tell("eraseMember", 200, nil)
	s.widget()
	s.make("createTag", 201, "tagId", object{"name": "Mobile"})
	s.tell("updateTag", 200, object{"color": "#aabbcc"})
	s.tell("listTags", 200, nil)
	s.make("identifyContact", 201, "contactId", object{"externalUserId": "u-1", "email": "Ada@Example.com"})
	s.tell("identifyContact", 200, object{"externalUserId": "u-1", "name": "Ada"})
	s.tell("identifyContacts", 200, object{"contacts": []object{{"externalUserId": "u-1", "plan": "team"}, {"externalUserId": "u-2"}, {}}})
	s.tell("upsertContacts", 200, object{"contacts": []object{{"externalUserId": "u-1", "plan": "pro"}, {"externalUserId": "u-2"}, {}}})
	s.tell("createContact", 201, object{"email": "bo@example.com"})
	s.tell("getContact", 200, nil)
	s.tell("updateContact", 200, object{"plan": "business"})
	s.tell("listContacts", 200, nil)
}

// goOn uses the resources and deletes them.
func (s *story) goOn() {
	s.t.Helper()
	s.make("createWebhook", 201, "webhookId", object{"url": "https://example.com/hook", "events": event.Types})
	s.tell("listWebhooks", 200, nil)
	s.tell("getWebhook", 200, nil)
	s.tell("getWebhookHealth", 200, nil)
	s.make("createPost", 201, "postId", object{
		"title": "Dark mode", "body": object{"json": object{"type": "doc"}, "text": "Please."},
		"contactId": s.ids["contactId"], "tagIds": []string{s.ids["tagId"]},
	})
	s.tell("updatePost", 200, object{"status": "planned"})
	s.tell("getPost", 200, nil)
	s.tell("listPosts", 200, nil)
	s.tell("listAllPosts", 200, nil)
	s.tell("listContactPosts", 200, nil)
	s.tell("castVote", 201, nil)
	s.tell("castVote", 200, nil)
	s.tell("listVotes", 200, nil)
	s.tell("retractVote", 200, nil)
	s.tell("castVote", 201, object{"contactId": s.ids["contactId"]})
	s.tell("castVote", 200, object{"externalUserId": "u-1", "createContact": true})
	s.make("createComment", 201, "commentId", object{"body": object{"text": "Me too."}})
	s.tell("createComment", 201, object{"body": object{"text": "And me."}, "contactId": s.ids["contactId"]})
	s.tell("updateComment", 200, object{"body": object{"text": "Me, too."}})
	s.tell("listComments", 200, nil)
	s.tell("getComment", 200, nil)
	s.tell("deleteComment", 200, nil)
	s.submissions()
	s.make("createChangelogEntry", 201, "entryId", object{"title": "Dark at last"})
	s.tell("replaceLinkedPosts", 200, object{"postIds": []string{s.ids["postId"]}})
	s.tell("updateChangelogEntry", 200, object{"publishedAt": "2026-03-12T10:41:07Z"})
	s.tell("getChangelogEntry", 200, nil)
	s.tell("listChangelog", 200, nil)
	s.tell("listEvents", 200, nil)
	log := s.tell("listDeliveries", 200, nil).Body["data"].([]any)
	s.ids["deliveryId"] = log[0].(object)["id"].(string)
	s.tell("getDelivery", 200, nil)
	s.tell("replayDelivery", 201, nil)
	s.tell("testWebhook", 201, nil)
	s.make("recoverWebhook", 202, "recoveryId", object{"since": "2026-03-12T10:41:07Z", "eventType": "post.created"})
	s.tell("getRecovery", 200, nil)
	s.tell("listRecoveries", 200, nil)
	s.tell("rotateWebhookSecret", 200, object{"overlapSeconds": 60})
	s.tell("updateWebhook", 200, object{"enabled": false})
	s.tell("deleteWebhook", 200, nil)
	s.tell("deleteTag", 200, nil)
	s.tell("deleteChangelogEntry", 200, nil)
	source := s.ids["postId"]
	s.make("createPost", 201, "postId", object{"title": "Night mode"})
	s.tell("mergePosts", 200, object{"sourceIds": []string{source}})
	s.tell("deletePost", 200, nil)
	s.ids["postId"] = source
	s.tell("deletePost", 200, nil)
	s.make("exportContact", 202, "subjectRequestId", nil)
	s.tell("getSubjectRequest", 200, nil)
	s.Finished(s.t, s.ids["subjectRequestId"])
	s.tell("listSubjectRecords", 200, nil)
	s.tell("listSubscribers", 200, nil)
	s.tell("deleteContact", 200, nil)
	s.make("identifyContact", 201, "contactId", object{"externalUserId": "u-3", "email": "cy@example.com", "name": "Cy"})
	s.tell("eraseContact", 202, object{"text": "blank"})
	s.tell("listAudit", 200, nil)
	s.tell("deleteBoard", 200, object{"confirmName": "Feature requests"})
}

// widget is the part of the story about the widget.
func (s *story) widget() {
	s.t.Helper()
	s.make("createWidgetSecret", 201, "secretId", nil)
	s.tell("listWidgetSecrets", 200, nil)
	s.tell("deleteWidgetSecret", 200, nil)
	s.tell("replaceWidgetOrigins", 200, object{"origins": []string{"https://app.example.com"}})
	s.tell("getWidgetOrigins", 200, nil)
}

// submissions is the part of the story about texts of end-users that wait for approval.
func (s *story) submissions() {
	s.t.Helper()
	before := len(trail(s.t, s.Tenant, ""))
	s.ids["submissionId"] = s.Submission(s.t, s.ids["boardId"], s.ids["postId"])
	require.Len(s.t, trail(s.t, s.Tenant, ""), before+1, "the board's change, and nothing of who has written")
	s.order = append(s.order, "updateBoard")
	s.tell("listSubmissions", 200, nil)
	s.tell("getSubmission", 200, nil)
	s.tell("approveSubmission", 201, nil)
	s.ids["submissionId"] = s.Submission(s.t, s.ids["boardId"], s.ids["postId"])
	s.tell("rejectSubmission", 200, nil)
}

// promises returns the operations of the contract with their statuses below 300.
func promises(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, o := range load(t).operations() {
		for status := range o.Responses.Map() {
			if status < strconv.Itoa(http.StatusMultipleChoices) {
				all[o.OperationID+" "+status] = true
			}
		}
	}
	return all
}
