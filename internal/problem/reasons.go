package problem

import "slices"

// Reason is a value of details.reason. It tells what stands in the way of a valid request.
//
// The rows below are the only place for the code, the message and the notice of a reason. The list in
// docs/api/errors.md is generated from them, and tests compare the contract and the pages with them.
type Reason struct {
	Name    string
	Code    Code
	Message string
	// Notice is the name of the texts (web/messages) on the page of a visitor whose action meets the
	// reason.
	Notice string
	// Cause completes the line in docs/api/errors.md. It is empty if no client of the API meets the
	// reason.
	Cause string
}

// The notices of refused actions.
const (
	noticeClosed  = "closed"  // the organization takes nothing from visitors
	noticeRefused = "refused" // a rule keeps this visitor from it
	noticeFull    = "full"
	noticeChanged = "changed"
)

// Reasons are the rows in their order.
var Reasons []*Reason

func reason(code Code, name, notice, message, cause string) *Reason {
	r := &Reason{Name: name, Code: code, Message: message, Notice: notice, Cause: cause}
	Reasons = append(Reasons, r)
	return r
}

// The organization, the role or the deployment does not allow the request.
var (
	BillingReadOnly = reason(Forbidden, "billing_read_only", noticeClosed, "The organization is in a read-only billing state.",
		"the organization is [read-only](authentication.md#read-only-organizations)")
	EditWindowExpired = reason(Forbidden, "edit_window_expired", noticeRefused, "The comment can't be edited any more.",
		"the comment is too old for an edit")
	EventFeedOff = reason(Forbidden, "event_feed_off", noticeRefused, "This deployment keeps no feed of events.",
		"the deployment keeps no feed")
	ForeignOrigin = reason(Forbidden, "foreign_origin", noticeRefused, "Pages of this origin may not use this service.",
		"a browser sent the request for a page of another site")
	NotYourKey = reason(Forbidden, "not_your_key", noticeRefused, "The API key is another member's.",
		"you rotated the key of another member")
	RoleInsufficient = reason(Forbidden, "role_insufficient", noticeRefused, "The role of the key's member doesn't allow it.",
		"the key's member lacks the [role](authentication.md#members-and-their-roles)")
	SubscriberMailsNotAllowed = reason(Forbidden, "subscriber_mails_not_allowed", noticeRefused,
		"The operator of this service has not allowed this organization to send e-mails to end-users: ask the operator.",
		"the operator has not allowed e-mails to end-users")
	OriginNotAllowed = reason(Forbidden, "origin_not_allowed", noticeRefused,
		"The widget of this organization is not for pages of this origin: PUT /v1/widget/origins sets those that may hold it.", "")
	PublicClosed = reason(Forbidden, "public_closed", noticeClosed, "The organization takes nothing from the public just now.", "")
	QueueFull    = reason(Forbidden, "queue_full", noticeFull, "Too much waits to be looked at just now.", "")
)

// Existing data conflicts with the request.
var (
	AlreadyMerged = reason(Conflict, "already_merged", noticeChanged, "The post is merged into another post already.",
		"the post is merged into another one")
	BoardNotEmpty = reason(Conflict, "board_not_empty", noticeChanged, "The board isn't empty.",
		"the board still has posts, entries or tags")
	BoardNotPublic = reason(Conflict, "board_not_public", noticeChanged, "The board isn't public any more.",
		"you approved a submission on a board that is private now")
	ExportRunning = reason(Conflict, "export_running", noticeChanged, "The export isn't completed yet.",
		"the export still runs")
	KeyExpired       = reason(Conflict, "key_expired", noticeChanged, "The API key has expired.", "the key has expired")
	KeyRevoked       = reason(Conflict, "key_revoked", noticeChanged, "The API key is revoked.", "the key is revoked")
	LastOwner        = reason(Conflict, "last_owner", noticeChanged, "The member is the organization's only owner.", "the member is the only owner")
	MemberNotRemoved = reason(Conflict, "member_not_removed", noticeChanged, "The member is not removed: remove the member first, then erase.",
		"remove the member before the erasure")
	NotSubscribed = reason(Conflict, "not_subscribed", noticeChanged, "The webhook doesn't subscribe to this event.",
		"the webhook does not subscribe to the event")
	RecoveryRunning = reason(Conflict, "recovery_running", noticeChanged, "A recovery of the webhook runs already.",
		"the webhook has a running recovery")
	TagLimit = reason(Conflict, "tag_limit", noticeChanged, "The board has as many tags as it may have.",
		"the board has 500 tags")
	TargetMerged = reason(Conflict, "target_merged", noticeChanged, "The post to merge into is merged itself.",
		"the target of the merge is merged itself")
	WebhookDisabled   = reason(Conflict, "webhook_disabled", noticeChanged, "The webhook is disabled.", "the webhook is disabled")
	WidgetSecretLimit = reason(Conflict, "widget_secret_limit", noticeChanged,
		"There are two secrets already; delete the one that is no longer used.", "the widget has two secrets")
)

// CursorExpired is the reason of a cursor whose changes are no longer stored.
var CursorExpired = reason(Gone, "cursor_expired", noticeChanged,
	"The changes since this cursor are no longer stored; read the list anew, without a cursor.",
	"the `syncCursor` is from before a restore, or older than the remembered deletions")

// The token of the widget is refused. The reasons reveal none of its content.
var (
	TokenMalformed = reason(Unauthorized, "token_malformed", noticeRefused,
		"The token isn't a JWT in compact form with alg HS256, kid, sub, iss, aud, iat and exp.", "")
	TokenUnknownKey = reason(Unauthorized, "token_unknown_key", noticeRefused,
		"The token's kid is not the id of a secret of this widget.", "")
	TokenBadSignature = reason(Unauthorized, "token_bad_signature", noticeRefused,
		"The token isn't signed by HS256 with the secret that its kid names.", "")
	TokenExpired     = reason(Unauthorized, "token_expired", noticeRefused, "The token has expired.", "")
	TokenNotValidYet = reason(Unauthorized, "token_not_valid_yet", noticeRefused, "The token is not valid yet.", "")
	TokenLivesLong   = reason(Unauthorized, "token_lives_too_long", noticeRefused,
		"The token is valid for more than an hour: exp may be at most 3600 after iat.", "")
	TokenWrongIssuer = reason(Unauthorized, "token_wrong_issuer", noticeRefused,
		"The token's iss must be the id of the organization.", "")
	TokenWrongAudience = reason(Unauthorized, "token_wrong_audience", noticeRefused, "The token's aud must be widget.", "")
)

// Problem makes the problem with the reason.
func (r *Reason) Problem() *Error { return New(r.Code, r.Message).With("reason", r.Name) }

// Is reports whether the error's chain holds a problem with the reason.
func (r *Reason) Is(err error) bool { return ReasonOf(err) == r }

// ReasonOf returns the reason of the problem in the error's chain, or nil if there is none.
func ReasonOf(err error) *Reason {
	p, ok := As(err)
	if !ok {
		return nil
	}
	at := slices.IndexFunc(Reasons, func(r *Reason) bool { return r.Name == p.Details["reason"] })
	if at < 0 {
		return nil
	}
	return Reasons[at]
}
