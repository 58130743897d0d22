package contacts

import (
	"context"
	"maps"
	"slices"

	"earshot/ent/db"
	"earshot/internal/batch"
	"earshot/internal/change"
	"earshot/internal/page"
	"earshot/internal/problem"
	"earshot/internal/publicid"
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
	b := &identification{
		Service: s, of: caller.Organization.ID, limit: s.capOf(caller.Organization.Plan),
		in: in, out: make([]Identified, len(in)), memory: memory,
	}
	for _, turn := range b.turns() {
		b.identify(ctx, turn)
	}
	if b.broken != nil && !slices.ContainsFunc(b.out, func(i Identified) bool { return i.Contact != nil }) {
		return nil, b.broken
	}
	return b.out, nil
}

// identification is a batch under way. Its methods refer to items by index.
type identification struct {
	*Service
	of publicid.Organization
	// limit is the plan's cap, or 0 for no cap.
	limit  int
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
func (b *identification) turns() (turns [][]int) {
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

// identify identifies items of different contacts. It handles existing contacts without new traits,
// existing contacts with new traits and new contacts in groups. It runs each remaining item alone.
func (b *identification) identify(ctx context.Context, left []int) {
	insertFirst := b.limit == 0 && b.imports.likely(b.of)
	if insertFirst {
		left = b.insert(ctx, left)
	}
	there, left := b.seeAgain(ctx, left)
	if !insertFirst {
		left = b.insert(ctx, left)
	}
	left = append(left, b.fill(ctx, there)...)
	slices.Sort(left)
	for _, i := range left {
		if b.broken == nil && b.hasRoom(ctx, i) {
			found, created, err := b.identifyAlone(ctx, b.in[i].ExternalUserID, b.in[i].Traits)
			b.done(i, found, created, err)
		} else if b.out[i].Err == nil {
			b.out[i].Err = b.broken
		}
	}
}

// seeAgain is Service.seeAgain for all items. It returns the items of existing contacts that may
// have new traits, and the items of unknown contacts.
func (b *identification) seeAgain(ctx context.Context, items []int) (there, left []int) {
	byTold := map[string][]int{}
	for _, i := range items {
		told := b.in[i].Traits.columns()
		byTold[told] = append(byTold[told], i)
	}
	for _, told := range slices.Sorted(maps.Keys(byTold)) {
		same := byTold[told]
		found := make([]seen, len(same))
		if b.broken == nil {
			var err error
			found, err = change.Join(ctx, func(ctx context.Context) ([]seen, error) {
				return b.see(ctx, sighting{b.of, told}, b.ids(same), maxPlainMetadata)
			})
			if err != nil {
				b.broken, found = err, make([]seen, len(same))
			}
		}
		for n, i := range same {
			switch {
			case found[n].contact != nil:
				b.done(i, found[n].contact, false, nil)
			case found[n].there:
				there = append(there, i)
			default:
				left = append(left, i)
			}
		}
	}
	slices.Sort(left)
	slices.Sort(there)
	return there, left
}

func (b *identification) ids(items []int) []string {
	ids := make([]string, len(items))
	for n, i := range items {
		ids[n] = b.in[i].ExternalUserID
	}
	return ids
}

// fill adds the new traits of existing contacts.
func (b *identification) fill(ctx context.Context, items []int) (left []int) {
	if b.broken != nil || len(items) == 0 {
		return items
	}
	in := make([]learner, len(items))
	for n, i := range items {
		in[n] = learner{b.in[i].ExternalUserID, b.in[i].Traits}
	}
	results, err := b.learners.DoAll(ctx, in)
	return b.take(items, results, err, false)
}

// insert inserts new contacts, as far as the plan's cap allows.
func (b *identification) insert(ctx context.Context, items []int) (left []int) {
	if b.broken != nil || len(items) == 0 {
		return items
	}
	in := make([]newContact, len(items))
	for n, i := range items {
		in[n] = newIdentified(b.in[i].ExternalUserID, b.in[i].Traits)
		in[n].limit = b.limit
	}
	results, err := b.newcomers.DoAll(ctx, in)
	return b.take(items, results, err, true)
}

// take records the results of a group and returns the items that the group left out.
func (b *identification) take(items []int, results []batch.Result[*db.Contact], err error, created bool) (left []int) {
	if err != nil {
		b.broken = err
		return items
	}
	for n, i := range items {
		if r := results[n]; r.Out == nil && r.Err == nil {
			left = append(left, i)
		} else {
			b.done(i, r.Out, created, r.Err)
		}
	}
	return left
}

// done records the result of an item.
func (b *identification) done(i int, found *db.Contact, created bool, err error) {
	if err != nil {
		b.out[i].Err = err
		if p, ok := problem.As(err); !ok || p.Code == problem.RateLimited {
			b.broken = err
		}
		return
	}
	b.out[i] = Identified{Contact: found, Created: created}
	b.metadata += page.JSONSize(found.Metadata)
	if created {
		b.imports.inserted(b.of)
	} else {
		b.imports.known(b.of)
	}
}

// hasRoom reports whether the answer has room for one more contact, which may have large metadata.
// The limits are those of a page.
func (b *identification) hasRoom(ctx context.Context, i int) bool {
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
