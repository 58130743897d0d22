package publicid

import "time"

// The kinds. A new resource adds its lines in this file.
type (
	organizationKind   struct{}
	userKind           struct{}
	apiKeyKind         struct{}
	boardKind          struct{}
	tagKind            struct{}
	postKind           struct{}
	voteKind           struct{}
	commentKind        struct{}
	changelogEntryKind struct{}
	contactKind        struct{}
	webhookKind        struct{}
	eventKind          struct{}
	deliveryKind       struct{}
	attemptKind        struct{}
	recoveryKind       struct{}
	interactionKind    struct{}
	auditEntryKind     struct{}
	subjectRequestKind struct{}
	subjectRecordKind  struct{}
	widgetSecretKind   struct{}

	contactBackfillKind  struct{}
	backfillAddressKind  struct{}
	submissionKind       struct{}
	subscriberUpdateKind struct{}
	subscriberMailKind   struct{}
	subscriptionKind     struct{}
)

func (organizationKind) prefix() string   { return "org" }
func (userKind) prefix() string           { return "usr" }
func (apiKeyKind) prefix() string         { return "key" }
func (boardKind) prefix() string          { return "brd" }
func (tagKind) prefix() string            { return "tag" }
func (postKind) prefix() string           { return "pst" }
func (voteKind) prefix() string           { return "vot" }
func (commentKind) prefix() string        { return "cmt" }
func (changelogEntryKind) prefix() string { return "chg" }
func (contactKind) prefix() string        { return "ctc" }
func (webhookKind) prefix() string        { return "whk" }
func (eventKind) prefix() string          { return "evt" }
func (deliveryKind) prefix() string       { return "dlv" }
func (attemptKind) prefix() string        { return "att" }
func (recoveryKind) prefix() string       { return "rcv" }
func (interactionKind) prefix() string    { return "ixn" }
func (auditEntryKind) prefix() string     { return "aud" }
func (subjectRequestKind) prefix() string { return "dsr" }
func (subjectRecordKind) prefix() string  { return "rec" }
func (widgetSecretKind) prefix() string   { return "wgs" }
func (submissionKind) prefix() string     { return "sub" }

func (contactBackfillKind) prefix() string { return "bkf" }
func (backfillAddressKind) prefix() string { return "bka" }

func (subscriberUpdateKind) prefix() string { return "sup" }
func (subscriberMailKind) prefix() string   { return "sml" }
func (subscriptionKind) prefix() string     { return "sbs" }

type (
	// Organization is the id of an organization.
	Organization struct{ id[organizationKind] }
	// User is the id of a member of an organization.
	User struct{ id[userKind] }
	// APIKey is the id of an API key.
	APIKey struct{ id[apiKeyKind] }
	// Board is the id of a board.
	Board struct{ id[boardKind] }
	// Tag is the id of a tag.
	Tag struct{ id[tagKind] }
	// Post is the id of a post.
	Post struct{ id[postKind] }
	// Vote is the id of a vote.
	Vote struct{ id[voteKind] }
	// Comment is the id of a comment.
	Comment struct{ id[commentKind] }
	// ChangelogEntry is the id of a changelog entry.
	ChangelogEntry struct{ id[changelogEntryKind] }
	// Contact is the id of a contact.
	Contact struct{ id[contactKind] }
	// Webhook is the id of a webhook.
	Webhook struct{ id[webhookKind] }
	// Event is the id of an event.
	Event struct{ id[eventKind] }
	// Delivery is the id of a delivery. Receivers use it to detect duplicates.
	Delivery struct{ id[deliveryKind] }
	// Attempt is the id of one attempt of a delivery.
	Attempt struct{ id[attemptKind] }
	// Recovery is the id of a recovery: the replay of the failed deliveries of a period.
	Recovery struct{ id[recoveryKind] }
	// Interaction is the id of an action that an end-user has yet to confirm by e-mail.
	Interaction struct{ id[interactionKind] }
	// AuditEntry is the id of one line of the audit trail.
	AuditEntry struct{ id[auditEntryKind] }
	// SubjectRequest is the id of a data-subject request: the export or the erasure of a person.
	SubjectRequest struct{ id[subjectRequestKind] }
	// SubjectRecord is the id of a record that a data-subject request has found.
	SubjectRecord struct{ id[subjectRecordKind] }
	// WidgetSecret is the id of a secret of the widget: the kid of tokens.
	WidgetSecret struct{ id[widgetSecretKind] }
	// ContactBackfill is the id of a search for contacts in old activity.
	ContactBackfill struct{ id[contactBackfillKind] }
	// BackfillAddress is the id of an address that such a search has yet to look for.
	BackfillAddress struct{ id[backfillAddressKind] }
	// Submission is the id of an end-user's post or comment that waits for moderation.
	Submission struct{ id[submissionKind] }
	// SubscriberUpdate is the id of a change to announce to end-users by e-mail.
	SubscriberUpdate struct{ id[subscriberUpdateKind] }
	// SubscriberMail is the id of one e-mail to an end-user about such changes.
	SubscriberMail struct{ id[subscriberMailKind] }
	// Subscription is the id of a person's choice of e-mails.
	Subscription struct{ id[subscriptionKind] }
)

// NewOrganization makes a fresh id.
func NewOrganization() Organization { return Organization{fresh[organizationKind]()} }

// NewUser makes a fresh id.
func NewUser() User { return User{fresh[userKind]()} }

// NewAPIKey makes a fresh id.
func NewAPIKey() APIKey { return APIKey{fresh[apiKeyKind]()} }

// NewBoard makes a fresh id.
func NewBoard() Board { return Board{fresh[boardKind]()} }

// NewTag makes a fresh id.
func NewTag() Tag { return Tag{fresh[tagKind]()} }

// NewPost makes a fresh id.
func NewPost() Post { return Post{fresh[postKind]()} }

// NewVote makes a fresh id.
func NewVote() Vote { return Vote{fresh[voteKind]()} }

// NewComment makes a fresh id.
func NewComment() Comment { return Comment{fresh[commentKind]()} }

// NewChangelogEntry makes a fresh id.
func NewChangelogEntry() ChangelogEntry { return ChangelogEntry{fresh[changelogEntryKind]()} }

// NewContact makes a fresh id.
func NewContact() Contact { return Contact{fresh[contactKind]()} }

// NewWebhook makes a fresh id.
func NewWebhook() Webhook { return Webhook{fresh[webhookKind]()} }

// NewEvent makes a fresh id.
func NewEvent() Event { return Event{fresh[eventKind]()} }

// NewDelivery makes a fresh id.
func NewDelivery() Delivery { return Delivery{fresh[deliveryKind]()} }

// DeliveryAt returns a lower bound for the ids of all deliveries that are made at or after a time.
// The time counts to the millisecond. Another kind gets such a function with its first user.
func DeliveryAt(at time.Time) Delivery { return Delivery{firstAt[deliveryKind](at)} }

// EventAt is DeliveryAt for events.
func EventAt(at time.Time) Event { return Event{firstAt[eventKind](at)} }

// RecoveryAt is DeliveryAt for recoveries.
func RecoveryAt(at time.Time) Recovery { return Recovery{firstAt[recoveryKind](at)} }

// NewAttempt makes a fresh id.
func NewAttempt() Attempt { return Attempt{fresh[attemptKind]()} }

// NewRecovery makes a fresh id.
func NewRecovery() Recovery { return Recovery{fresh[recoveryKind]()} }

// NewContactBackfill makes a fresh id.
func NewContactBackfill() ContactBackfill { return ContactBackfill{fresh[contactBackfillKind]()} }

// NewBackfillAddress makes a fresh id.
func NewBackfillAddress() BackfillAddress { return BackfillAddress{fresh[backfillAddressKind]()} }

// NewInteraction makes a fresh id.
func NewInteraction() Interaction { return Interaction{fresh[interactionKind]()} }

// NewAuditEntry makes a fresh id.
func NewAuditEntry() AuditEntry { return AuditEntry{fresh[auditEntryKind]()} }

// AuditEntryAt is DeliveryAt for the audit trail.
func AuditEntryAt(at time.Time) AuditEntry { return AuditEntry{firstAt[auditEntryKind](at)} }

// NewSubjectRequest makes a fresh id.
func NewSubjectRequest() SubjectRequest { return SubjectRequest{fresh[subjectRequestKind]()} }

// NewSubjectRecord makes a fresh id.
func NewSubjectRecord() SubjectRecord { return SubjectRecord{fresh[subjectRecordKind]()} }

// NewWidgetSecret makes a fresh id.
func NewWidgetSecret() WidgetSecret { return WidgetSecret{fresh[widgetSecretKind]()} }

// NewSubmission makes a fresh id.
func NewSubmission() Submission { return Submission{fresh[submissionKind]()} }

// SubmissionAt is DeliveryAt for submissions.
func SubmissionAt(at time.Time) Submission { return Submission{firstAt[submissionKind](at)} }

// parser is the method set of the pointer to every kind of id.
type parser[T any] interface {
	*T
	UnmarshalText(text []byte) error
}

// Parse reads the public form of an id: Parse[Post]("pst_…"). It returns
// ErrMalformed for text that can't be an id of that kind.
func Parse[T any, P parser[T]](text string) (T, error) {
	var v T
	err := P(&v).UnmarshalText([]byte(text))
	return v, err
}

// Read parses an id from a caller. Ids are opaque to callers, so text that can't be an id of the
// kind results in the zero id. No row has it, so the caller gets the same answer as for any other
// id that doesn't exist.
func Read[T any, P parser[T]](text string) T {
	id, err := Parse[T, P](text)
	if err != nil {
		return *new(T)
	}
	return id
}

// NewSubscriberUpdate makes a fresh id.
func NewSubscriberUpdate() SubscriberUpdate { return SubscriberUpdate{fresh[subscriberUpdateKind]()} }

// NewSubscriberMail makes a fresh id.
func NewSubscriberMail() SubscriberMail { return SubscriberMail{fresh[subscriberMailKind]()} }

// NewSubscription makes a fresh id.
func NewSubscription() Subscription { return Subscription{fresh[subscriptionKind]()} }
