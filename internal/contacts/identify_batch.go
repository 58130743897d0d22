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

// MaxIdentified is how many contacts a batch may have (api/openapi.yaml).
const MaxIdentified = 100

// maxPlainMetadata is what a contact of a batch may have without being looked at alone: the
// hundred of them come to less than a page of a list.
const maxPlainMetadata = 16 << 10

// Identification is an item of a batch.
type Identification struct {
	ExternalUserID string
	Traits         Traits
	// Refused is what is wrong with the item already; nothing else of it counts then.
	Refused error
}

// Identified is what became of an item: the contact, or an error that is the item's alone.
type Identified struct {
	Contact *db.Contact
	Created bool
	Err     error
}

// IdentifyContacts is IdentifyContact for each item, in their order. What is wrong with one
// leaves the others as they are. The answer reserves memory for contacts with much metadata.
//
// Where a transaction fails for a reason of ours, the items that are left end with the same
// error, and all of them where nothing has taken effect: then it is returned.
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

// identification is a batch under way. Items are known by their numbers.
type identification struct {
	*Service
	of publicid.Organization
	// limit is the plan's cap; 0 is none.
	limit  int
	in     []Identification
	out    []Identified
	memory *page.Reservation
	// metadata is how many bytes of it the answer has so far; reserved says that there is memory
	// for as many as it may have.
	metadata int
	reserved bool
	// broken is why nothing more is tried.
	broken error
}

// turns are the items that can be made together, one turn after the other: an id that is there
// several times has a turn for each, because each builds on the one before.
func (b *identification) turns() (turns [][]int) {
	before := map[string]int{}
	for i := range b.in {
		item := &b.in[i]
		if b.out[i].Err = item.Refused; item.Refused == nil {
			b.out[i].Err = checkIdentified(item.ExternalUserID, &item.Traits)
		}
		if b.out[i].Err != nil {
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

// identify identifies items of different contacts: those that are known and learn nothing, those
// that learn something, those that are new, and each that is none of this alone.
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

// seeAgain is Service.seeAgain for all items. It returns those of contacts that are there and
// may learn something, and those left that it knows nothing of.
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

// fill has those that are known learn what they are told.
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

// insert inserts those that are new, as far as the plan's cap has room.
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

// take takes what a group has done, and returns what it has left.
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

// done notes what became of an item.
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

// hasRoom reports whether the answer has room for one more contact, whose metadata may be
// large. The bounds are those of a page.
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
