package main

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// known is the number of contacts that a run identifies repeatedly.
const known = 1000

func contactID(round string, i int) string { return fmt.Sprintf("bench-%s-%d", round, i) }

// identifyUnchanged identifies known contacts without any change.
func (s *stack) identifyUnchanged(ctx context.Context, o options, identify func(ctx context.Context, externalID string, into *identified) error) (measured, error) {
	round := uuid.NewString()
	if err := s.copyContacts(ctx, s.organization, known, func(i int) string { return contactID(round, i) }); err != nil {
		return measured{}, err
	}
	told, since := &identified{told: map[string]string{}}, now()
	m, err := s.loop(ctx, o, func(ctx context.Context, i int) error { return identify(ctx, contactID(round, i%known), told) })
	if err != nil {
		return m, err
	}
	return m, s.identifiedAre(ctx, since, told, "")
}

// identifyKnown sets a trait of known contacts, once for each contact.
func (s *stack) identifyKnown(ctx context.Context, o options) (measured, error) {
	round := uuid.NewString()
	n := max(known, int(o.period.Seconds()*knownPerSecond))
	if err := s.copyContacts(ctx, s.organization, n, func(i int) string { return contactID(round, i) }); err != nil {
		return measured{}, err
	}
	told, since := &identified{told: map[string]string{}}, now()
	m, err := s.timed(ctx, func(ctx context.Context) (*latencies, error) {
		return closedLoop(ctx, o.period, n, o.connections/2, func(ctx context.Context, i int) error {
			return s.identify(ctx, contactID(round, i), "team", false, told)
		})
	})
	if err != nil {
		return m, err
	}
	return m, s.identifiedAre(ctx, since, told, "team")
}

// knownPerSecond is the number of prepared contacts for each second. A faster run ends early.
const knownPerSecond = 3000

func (s *stack) identifyNew(ctx context.Context, o options) (measured, error) {
	if err := s.copyContacts(ctx, s.organization, known, func(i int) string { return contactID(uuid.NewString(), i) }); err != nil {
		return measured{}, err
	}
	round := uuid.NewString()
	told, since := &identified{told: map[string]string{}}, now()
	m, err := s.loop(ctx, o, func(ctx context.Context, i int) error { return s.identify(ctx, contactID(round, i), "", true, told) })
	if err != nil {
		return m, err
	}
	return m, s.identifiedAre(ctx, since, told, "")
}

func (s *stack) identifiedAre(ctx context.Context, since time.Time, told *identified, plan string) error {
	if err := s.contactsAre(ctx, s.organization, since, told.told, plan); err != nil {
		return err
	}
	return s.noDeliveries(ctx, s.organization, since)
}
