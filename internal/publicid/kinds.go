package publicid

import "time"

// The kinds. A new resource adds its lines in this file. String and MarshalText return the public form of an id, and
// UnmarshalText parses it, or returns ErrMalformed.
//
// A generic type for all kinds would be shorter, but each package would compile its methods again.

// Organization is the id of an organization.
type Organization struct{ id }

// NewOrganization makes a fresh id.
func NewOrganization() Organization { return Organization{fresh()} }

func (i Organization) String() string                   { return i.text("org") }
func (i Organization) MarshalText() ([]byte, error)     { return []byte(i.String()), nil }
func (i *Organization) UnmarshalText(text []byte) error { return i.parse("org", text) }

// User is the id of a member of an organization.
type User struct{ id }

// NewUser makes a fresh id.
func NewUser() User { return User{fresh()} }

func (i User) String() string                   { return i.text("usr") }
func (i User) MarshalText() ([]byte, error)     { return []byte(i.String()), nil }
func (i *User) UnmarshalText(text []byte) error { return i.parse("usr", text) }

// APIKey is the id of an API key.
type APIKey struct{ id }

// NewAPIKey makes a fresh id.
func NewAPIKey() APIKey { return APIKey{fresh()} }

func (i APIKey) String() string                   { return i.text("key") }
func (i APIKey) MarshalText() ([]byte, error)     { return []byte(i.String()), nil }
func (i *APIKey) UnmarshalText(text []byte) error { return i.parse("key", text) }

// Board is the id of a board.
type Board struct{ id }

// NewBoard makes a fresh id.
func NewBoard() Board { return Board{fresh()} }

func (i Board) String() string                   { return i.text("brd") }
func (i Board) MarshalText() ([]byte, error)     { return []byte(i.String()), nil }
func (i *Board) UnmarshalText(text []byte) error { return i.parse("brd", text) }

// Tag is the id of a tag.
type Tag struct{ id }

// NewTag makes a fresh id.
func NewTag() Tag { return Tag{fresh()} }

func (i Tag) String() string                   { return i.text("tag") }
func (i Tag) MarshalText() ([]byte, error)     { return []byte(i.String()), nil }
func (i *Tag) UnmarshalText(text []byte) error { return i.parse("tag", text) }

// Post is the id of a post.
type Post struct{ id }

// NewPost makes a fresh id.
func NewPost() Post { return Post{fresh()} }

func (i Post) String() string                   { return i.text("pst") }
func (i Post) MarshalText() ([]byte, error)     { return []byte(i.String()), nil }
func (i *Post) UnmarshalText(text []byte) error { return i.parse("pst", text) }

// Vote is the id of a vote.
type Vote struct{ id }

// NewVote makes a fresh id.
func NewVote() Vote { return Vote{fresh()} }

func (i Vote) String() string                   { return i.text("vot") }
func (i Vote) MarshalText() ([]byte, error)     { return []byte(i.String()), nil }
func (i *Vote) UnmarshalText(text []byte) error { return i.parse("vot", text) }

// Comment is the id of a comment.
type Comment struct{ id }

// NewComment makes a fresh id.
func NewComment() Comment { return Comment{fresh()} }

func (i Comment) String() string                   { return i.text("cmt") }
func (i Comment) MarshalText() ([]byte, error)     { return []byte(i.String()), nil }
func (i *Comment) UnmarshalText(text []byte) error { return i.parse("cmt", text) }

// ChangelogEntry is the id of a changelog entry.
type ChangelogEntry struct{ id }

// NewChangelogEntry makes a fresh id.
func NewChangelogEntry() ChangelogEntry { return ChangelogEntry{fresh()} }

func (i ChangelogEntry) String() string                   { return i.text("chg") }
func (i ChangelogEntry) MarshalText() ([]byte, error)     { return []byte(i.String()), nil }
func (i *ChangelogEntry) UnmarshalText(text []byte) error { return i.parse("chg", text) }

// Contact is the id of a contact.
type Contact struct{ id }

// NewContact makes a fresh id.
func NewContact() Contact { return Contact{fresh()} }

func (i Contact) String() string                   { return i.text("ctc") }
func (i Contact) MarshalText() ([]byte, error)     { return []byte(i.String()), nil }
func (i *Contact) UnmarshalText(text []byte) error { return i.parse("ctc", text) }

// Webhook is the id of a webhook.
type Webhook struct{ id }

// NewWebhook makes a fresh id.
func NewWebhook() Webhook { return Webhook{fresh()} }

func (i Webhook) String() string                   { return i.text("whk") }
func (i Webhook) MarshalText() ([]byte, error)     { return []byte(i.String()), nil }
func (i *Webhook) UnmarshalText(text []byte) error { return i.parse("whk", text) }

// Event is the id of an event.
type Event struct{ id }

// NewEvent makes a fresh id.
func NewEvent() Event { return Event{fresh()} }

// EventAt is DeliveryAt for events.
func EventAt(at time.Time) Event { return Event{firstAt(at)} }

func (i Event) String() string                   { return i.text("evt") }
func (i Event) MarshalText() ([]byte, error)     { return []byte(i.String()), nil }
func (i *Event) UnmarshalText(text []byte) error { return i.parse("evt", text) }

// Delivery is the id of a delivery. Receivers use it to detect duplicates.
type Delivery struct{ id }

// NewDelivery makes a fresh id.
func NewDelivery() Delivery { return Delivery{fresh()} }

// DeliveryAt returns a lower bound for the ids of all deliveries that are made at or after a time.
// The time counts to the millisecond. Another kind gets such a function with its first user.
func DeliveryAt(at time.Time) Delivery { return Delivery{firstAt(at)} }

func (i Delivery) String() string                   { return i.text("dlv") }
func (i Delivery) MarshalText() ([]byte, error)     { return []byte(i.String()), nil }
func (i *Delivery) UnmarshalText(text []byte) error { return i.parse("dlv", text) }

// Attempt is the id of one attempt of a delivery.
type Attempt struct{ id }

// NewAttempt makes a fresh id.
func NewAttempt() Attempt { return Attempt{fresh()} }

func (i Attempt) String() string                   { return i.text("att") }
func (i Attempt) MarshalText() ([]byte, error)     { return []byte(i.String()), nil }
func (i *Attempt) UnmarshalText(text []byte) error { return i.parse("att", text) }

// Recovery is the id of a recovery: the replay of the failed deliveries of a period.
type Recovery struct{ id }

// NewRecovery makes a fresh id.
func NewRecovery() Recovery { return Recovery{fresh()} }

// RecoveryAt is DeliveryAt for recoveries.
func RecoveryAt(at time.Time) Recovery { return Recovery{firstAt(at)} }

func (i Recovery) String() string                   { return i.text("rcv") }
func (i Recovery) MarshalText() ([]byte, error)     { return []byte(i.String()), nil }
func (i *Recovery) UnmarshalText(text []byte) error { return i.parse("rcv", text) }

// Interaction is the id of an action that an end-user has yet to confirm by e-mail.
type Interaction struct{ id }

// NewInteraction makes a fresh id.
func NewInteraction() Interaction { return Interaction{fresh()} }

func (i Interaction) String() string                   { return i.text("ixn") }
func (i Interaction) MarshalText() ([]byte, error)     { return []byte(i.String()), nil }
func (i *Interaction) UnmarshalText(text []byte) error { return i.parse("ixn", text) }

// AuditEntry is the id of one line of the audit trail.
type AuditEntry struct{ id }

// NewAuditEntry makes a fresh id.
func NewAuditEntry() AuditEntry { return AuditEntry{fresh()} }

// AuditEntryAt is DeliveryAt for the audit trail.
func AuditEntryAt(at time.Time) AuditEntry { return AuditEntry{firstAt(at)} }

func (i AuditEntry) String() string                   { return i.text("aud") }
func (i AuditEntry) MarshalText() ([]byte, error)     { return []byte(i.String()), nil }
func (i *AuditEntry) UnmarshalText(text []byte) error { return i.parse("aud", text) }

// SubjectRequest is the id of a data-subject request: the export or the erasure of a person.
type SubjectRequest struct{ id }

// NewSubjectRequest makes a fresh id.
func NewSubjectRequest() SubjectRequest { return SubjectRequest{fresh()} }

func (i SubjectRequest) String() string                   { return i.text("dsr") }
func (i SubjectRequest) MarshalText() ([]byte, error)     { return []byte(i.String()), nil }
func (i *SubjectRequest) UnmarshalText(text []byte) error { return i.parse("dsr", text) }

// SubjectRecord is the id of a record that a data-subject request has found.
type SubjectRecord struct{ id }

// NewSubjectRecord makes a fresh id.
func NewSubjectRecord() SubjectRecord { return SubjectRecord{fresh()} }

func (i SubjectRecord) String() string                   { return i.text("rec") }
func (i SubjectRecord) MarshalText() ([]byte, error)     { return []byte(i.String()), nil }
func (i *SubjectRecord) UnmarshalText(text []byte) error { return i.parse("rec", text) }

// WidgetSecret is the id of a secret of the widget: the kid of tokens.
type WidgetSecret struct{ id }

// NewWidgetSecret makes a fresh id.
func NewWidgetSecret() WidgetSecret { return WidgetSecret{fresh()} }

func (i WidgetSecret) String() string                   { return i.text("wgs") }
func (i WidgetSecret) MarshalText() ([]byte, error)     { return []byte(i.String()), nil }
func (i *WidgetSecret) UnmarshalText(text []byte) error { return i.parse("wgs", text) }

// ContactBackfill is the id of a search for contacts in old activity.
type ContactBackfill struct{ id }

// NewContactBackfill makes a fresh id.
func NewContactBackfill() ContactBackfill { return ContactBackfill{fresh()} }

func (i ContactBackfill) String() string                   { return i.text("bkf") }
func (i ContactBackfill) MarshalText() ([]byte, error)     { return []byte(i.String()), nil }
func (i *ContactBackfill) UnmarshalText(text []byte) error { return i.parse("bkf", text) }

// BackfillAddress is the id of an address that such a search has yet to look for.
type BackfillAddress struct{ id }

// NewBackfillAddress makes a fresh id.
func NewBackfillAddress() BackfillAddress { return BackfillAddress{fresh()} }

func (i BackfillAddress) String() string                   { return i.text("bka") }
func (i BackfillAddress) MarshalText() ([]byte, error)     { return []byte(i.String()), nil }
func (i *BackfillAddress) UnmarshalText(text []byte) error { return i.parse("bka", text) }

// Submission is the id of an end-user's post or comment that waits for moderation.
type Submission struct{ id }

// NewSubmission makes a fresh id.
func NewSubmission() Submission { return Submission{fresh()} }

// SubmissionAt is DeliveryAt for submissions.
func SubmissionAt(at time.Time) Submission { return Submission{firstAt(at)} }

func (i Submission) String() string                   { return i.text("sub") }
func (i Submission) MarshalText() ([]byte, error)     { return []byte(i.String()), nil }
func (i *Submission) UnmarshalText(text []byte) error { return i.parse("sub", text) }

// SubscriberUpdate is the id of a change to announce to end-users by e-mail.
type SubscriberUpdate struct{ id }

// NewSubscriberUpdate makes a fresh id.
func NewSubscriberUpdate() SubscriberUpdate { return SubscriberUpdate{fresh()} }

func (i SubscriberUpdate) String() string                   { return i.text("sup") }
func (i SubscriberUpdate) MarshalText() ([]byte, error)     { return []byte(i.String()), nil }
func (i *SubscriberUpdate) UnmarshalText(text []byte) error { return i.parse("sup", text) }

// SubscriberMail is the id of one e-mail to an end-user about such changes.
type SubscriberMail struct{ id }

// NewSubscriberMail makes a fresh id.
func NewSubscriberMail() SubscriberMail { return SubscriberMail{fresh()} }

func (i SubscriberMail) String() string                   { return i.text("sml") }
func (i SubscriberMail) MarshalText() ([]byte, error)     { return []byte(i.String()), nil }
func (i *SubscriberMail) UnmarshalText(text []byte) error { return i.parse("sml", text) }

// Subscription is the id of a person's choice of e-mails.
type Subscription struct{ id }

// NewSubscription makes a fresh id.
func NewSubscription() Subscription { return Subscription{fresh()} }

func (i Subscription) String() string                   { return i.text("sbs") }
func (i Subscription) MarshalText() ([]byte, error)     { return []byte(i.String()), nil }
func (i *Subscription) UnmarshalText(text []byte) error { return i.parse("sbs", text) }

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
