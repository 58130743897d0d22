package contacts

import (
	"context"
	"slices"

	"github.com/go-faster/errors"

	"earshot/ent/db"
	"earshot/internal/change"
	"earshot/internal/page"
	"earshot/internal/postgres"
	"earshot/internal/problem"
)

// MaxIdentified is the maximum number of contacts in a batch (api/openapi.yaml).
const MaxIdentified = 100

// maxPlainMetadata is the size of metadata up to which a contact of a batch can share a
// transaction. A batch of 100 such contacts is smaller than a page of a list.
const maxPlainMetadata = 16 << 10

// Identification is an item of a batch.
type Identification struct {
	ExternalUserID string
	Traits         Traits
	// Refused is an error found before the batch starts. If it is set, the other fields are
	// ignored.
	Refused error
}

// check normalizes the traits of an item and returns its error.
func (i *Identification) check() error {
	if i.Refused != nil {
		return i.Refused
	}
	return checkIdentified(i.ExternalUserID, &i.Traits)
}

// Identified is the result of an item: the contact, or an error of this item only.
type Identified struct {
	Contact *db.Contact
	Created bool
	Err     error
}

// IdentifyContacts is IdentifyContact for each item, in their order. An error of one item does not
// affect the others. The answer reserves memory for contacts with much metadata.
//
// If a transaction fails because of an internal error, the remaining items get the same error. If
// no item has taken effect, IdentifyContacts returns this error.
func (s *Service) IdentifyContacts(ctx context.Context, in []Identification, memory *page.Reservation) ([]Identified, error) {
	caller := change.CallerOf(ctx)
	if err := change.MayWrite(caller); err != nil {
		return nil, err
	}
	if len(in) == 0 || len(in) > MaxIdentified {
		return nil, problem.Invalid("contacts", "maxItems", "must have 1 to %d items", MaxIdentified)
	}
	b := &identifyRequest{
		Service: s, in: in, out: make([]Identified, len(in)), memory: memory,
	}
	for _, turn := range b.turns() {
		b.identify(ctx, turn)
	}
	if b.broken != nil && !slices.ContainsFunc(b.out, func(i Identified) bool { return i.Contact != nil }) {
		return nil, b.broken
	}
	return b.out, nil
}

// identifyRequest is a request with several items under way. Its methods refer to items by index.
type identifyRequest struct {
	*Service
	in     []Identification
	out    []Identified
	memory *page.Reservation
	// metadata is the number of bytes of metadata in the answer so far. Reserved is true once
	// memory for the largest answer is reserved.
	metadata int
	reserved bool
	// broken is the error that stopped the batch.
	broken error
}

// turns groups the items that can run together. An id that occurs several times has an item in each
// of several turns, because each item builds on the one before.
func (b *identifyRequest) turns() (turns [][]int) {
	before := map[string]int{}
	for i := range b.in {
		item := &b.in[i]
		if b.out[i].Err = item.check(); b.out[i].Err != nil {
			continue
		}
		turn := before[item.ExternalUserID]
		before[item.ExternalUserID]++
		if turn == len(turns) {
			turns = append(turns, nil)
		}
		turns[turn] = append(turns[turn], i)
	}
	return turns
}

// identify identifies items of different contacts in batches. It runs each remaining item alone.
func (b *identifyRequest) identify(ctx context.Context, items []int) {
	for _, i := range b.identifyTogether(ctx, items) {
		if b.broken == nil && b.hasRoom(ctx, i) {
			done, err := b.identities.DoAlone(ctx, b.wanted(i))
			b.done(i, done.Contact, done.created, err)
		} else if b.out[i].Err == nil {
			b.out[i].Err = b.broken
		}
	}
}

func (b *identifyRequest) wanted(i int) wantedContact {
	return wantedContact{b.in[i].ExternalUserID, b.in[i].Traits}
}

// identifyTogether identifies items in batches. It returns the items that have to run alone.
func (b *identifyRequest) identifyTogether(ctx context.Context, items []int) (left []int) {
	if b.broken != nil {
		return items
	}
	in := make([]wantedContact, len(items))
	for n, i := range items {
		in[n] = b.wanted(i)
	}
	for n, r := range b.identities.DoAll(ctx, in) {
		if errors.Is(r.Err, postgres.ErrAgain) {
			left = append(left, items[n])
		} else {
			b.done(items[n], r.Out.Contact, r.Out.created, r.Err)
		}
	}
	return left
}

// done records the result of an item.
func (b *identifyRequest) done(i int, found *db.Contact, created bool, err error) {
	if err != nil {
		b.out[i].Err = err
		if p, ok := problem.As(err); !ok || p.Code == problem.RateLimited {
			b.broken = err
		}
		return
	}
	b.out[i] = Identified{Contact: found, Created: created}
	b.metadata += page.JSONSize(found.Metadata)
}

// hasRoom reports whether the answer has room for one more contact, which may have large metadata.
// The limits are those of a page.
func (b *identifyRequest) hasRoom(ctx context.Context, i int) bool {
	if b.metadata > page.MaxBytes {
		b.out[i].Err = problem.New(problem.PayloadTooLarge,
			"The contacts before this one come to 8 MiB of metadata; send it in another batch.")
		return false
	}
	if b.metadata > maxPlainMetadata && !b.reserved {
		if err := b.memory.Reserve(ctx, page.MaxBytes); err != nil {
			b.broken = err
			return false
		}
		b.reserved = true
	}
	return true
}
