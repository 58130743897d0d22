package change

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"earshot/internal/event"
	"earshot/internal/publicid"
	"earshot/internal/store"
)

// Joint is one transaction with the changes of several callers of an organization, and what
// these caused.
type Joint struct {
	*store.Pipeline
	// Wait says to wait for what somebody else has locked, and not to leave it out.
	Wait bool
	// Organization is that of all.
	Organization publicid.Organization
	// Happened are the events so far, for the statement that inserts what they are about.
	Happened *store.Happened
	// Made are the rows that were inserted, once that is known.
	Made []uuid.UUID

	// subscribedOnly is the runner's setting.
	subscribedOnly bool
	subscribers    []store.Subscriber
	// By caller: the row that is inserted for it, the deliveries of its event, and why its
	// idempotency key can't be used.
	rows       []uuid.UUID
	deliveries [][]PendingDelivery
	taken      []error
	// keys are those of callers, by the callers' numbers in keyed.
	keys  []store.IdempotencyKey
	keyed []int
	found *store.KeyLook
}

func newJoint(key groupKey, of event.Type, callers int) *Joint {
	return &Joint{
		Wait: key.wait, Organization: key.organization, Happened: &store.Happened{Type: string(of)},
		rows: make([]uuid.UUID, callers), deliveries: make([][]PendingDelivery, callers), taken: make([]error, callers),
	}
}

// useKey is for a caller with an idempotency key. Of two with the same key the second one has
// to ask again.
func (j *Joint) useKey(caller int, key store.IdempotencyKey) {
	if slices.ContainsFunc(j.keys, func(k store.IdempotencyKey) bool { return k.ID == key.ID }) {
		j.taken[caller] = store.ErrKeyInUse
		return
	}
	j.keys, j.keyed = append(j.keys, key), append(j.keyed, caller)
}

func (j *Joint) lookForKeys() {
	if len(j.keys) > 0 {
		j.found = j.LookForKeys(j.Organization, j.keys)
	}
}

// Read reads what is queued, and who subscribes to the events. It is known then which callers
// are left out, because their idempotency key is taken.
func (j *Joint) Read(ctx context.Context) error {
	j.Subscribers(j.Happened.Type, &j.subscribers)
	if err := j.Send(ctx); err != nil || j.found == nil {
		return err
	}
	taken := j.found.Taken()
	for i, caller := range j.keyed {
		j.taken[caller] = taken[j.keys[i].ID]
	}
	return nil
}

// IsTaken reports whether a caller's idempotency key is taken, so that nothing may be changed
// for it.
func (j *Joint) IsTaken(caller int) bool { return j.taken[caller] != nil }

// Record has a row be inserted for a caller, by its number, with the event of it, and
// a delivery for each webhook that subscribes.
func (j *Joint) Record(caller int, row uuid.UUID, at time.Time, p event.Payload) error {
	j.rows[caller] = row
	if len(j.subscribers) == 0 && j.subscribedOnly {
		return nil
	}
	payload, err := event.Freeze(event.Type(j.Happened.Type), j.Organization, p)
	if err != nil {
		return err
	}
	recorded := publicid.NewEvent()
	j.Happened.Add(row, recorded, at, payload)
	for _, to := range j.subscribers {
		id := publicid.NewDelivery()
		j.Happened.Send(id, recorded, to.ID)
		j.deliveries[caller] = append(j.deliveries[caller], PendingDelivery{
			ID: id, Webhook: to.ID, Organization: j.Organization, EventType: j.Happened.Type, Host: HostOf(to.URL),
		})
	}
	return nil
}

// isMade reports whether what a caller wanted is there: the row that was to be inserted, if any.
func (j *Joint) isMade(caller int) bool {
	return j.rows[caller] == uuid.Nil || slices.Contains(j.Made, j.rows[caller])
}
