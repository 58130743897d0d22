package main

import (
	"context"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	earshot "earshot/sdk/go"
)

// ofABatch is the largest number of contacts in a batch.
const ofABatch = 100

// identifyBatch identifies the contacts in one batch. It returns an error unless all contacts are
// new (fresh), or all were known before.
func (t tenant) identifyBatch(ctx context.Context, externalIDs []string, fresh bool, into *identified) error {
	items := make([]earshot.IdentifyContactRequest, len(externalIDs))
	for i, id := range externalIDs {
		items[i] = contactOf(id)
	}
	results, err := t.api.Contacts.IdentifyBatch(ctx, earshot.IdentifyContactsRequest{Contacts: items})
	if err != nil {
		return errors.Wrap(err, "identify a batch")
	}
	for i, r := range results {
		if r.Contact == nil || *r.Created != fresh {
			return errors.Errorf("identify a batch: %+v of %s", r, externalIDs[i])
		}
		if err := into.note(externalIDs[i], r.Contact.ID); err != nil {
			return err
		}
	}
	return nil
}

func contactOf(externalID string) earshot.IdentifyContactRequest {
	return earshot.IdentifyContactRequest{
		ExternalUserID: externalID, Name: earshot.Some("Bench"), Email: earshot.Some(externalID + "@example.com"),
	}
}

// identifyBatches counts contacts: the figures are for one contact, but the latencies are for one
// request. The argument clients is the number of concurrent clients.
func (s *stack) identifyBatches(ctx context.Context, o options, clients int, fresh bool) (measured, error) {
	round := uuid.NewString()
	if !fresh {
		if err := s.copyContacts(ctx, s.organization, known, func(i int) string { return contactID(round, i) }); err != nil {
			return measured{}, err
		}
	}
	told, since := &identified{told: map[string]string{}}, now()
	m, err := s.timed(ctx, func(ctx context.Context) (*latencies, error) {
		return closedLoop(ctx, o.period, unlimited, clients, func(ctx context.Context, i int) error {
			ids := make([]string, ofABatch)
			for k := range ids {
				n := i*ofABatch + k
				if !fresh {
					n %= known
				}
				ids[k] = contactID(round, n)
			}
			return s.identifyBatch(ctx, ids, fresh, told)
		})
	})
	if err != nil {
		return m, err
	}
	return m.of(ofABatch), s.identifiedAre(ctx, since, told, "")
}

// byOne restricts a loop to one client, which waits for each answer.
func byOne(o options) options {
	o.connections = 2 // a loop uses half of them
	return o
}

// of converts the figures of an operation with n items to the figures of one item.
func (m measured) of(n float64) measured {
	m.PerSecond *= n
	m.CPU.Service, m.CPU.Postgres = m.CPU.Service/n, m.CPU.Postgres/n
	m.CPU.Temporal, m.CPU.Client = m.CPU.Temporal/n, m.CPU.Client/n
	m.WALBytes, m.Commits, m.Workflows = m.WALBytes/n, m.Commits/n, m.Workflows/n
	return m
}
