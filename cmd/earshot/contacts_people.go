package main

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-faster/errors"

	"earshot/internal/backfill"
	"earshot/internal/contacts"
	"earshot/internal/problem"
)

// maxBadLines limits the number of printed lines to a readable amount.
const maxBadLines = 1000

// readPeople reads a table with the column email and optionally the column name. If an address
// occurs more than once, the first line counts. Bad has a message for each line without a valid
// address. The messages never quote the line, because they may end up in a log.
func readPeople(from io.Reader) (people []backfill.Person, bad []string, err error) {
	// Spreadsheet programs write a byte order mark at the start of a file.
	in := bufio.NewReader(from)
	if mark, _ := in.Peek(3); string(mark) == "\xef\xbb\xbf" {
		_, _ = in.Discard(3)
	}
	table := csv.NewReader(in)
	table.FieldsPerRecord, table.TrimLeadingSpace = -1, true
	header, err := table.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, errors.Wrap(err, "read the table")
	}
	column := func(name string) int {
		return slices.IndexFunc(header, func(title string) bool { return strings.EqualFold(strings.TrimSpace(title), name) })
	}
	email, name := column("email"), column("name")
	if email < 0 {
		return nil, nil, errors.New("the first line has to name the columns: email, and name if you like")
	}
	seen := map[string]bool{}
	for {
		record, err := table.Read()
		if errors.Is(err, io.EOF) {
			return people, bad, nil
		}
		if err != nil {
			return nil, nil, errors.Wrap(err, "read the table")
		}
		line, _ := table.FieldPos(0)
		cell := func(i int) string {
			if i < 0 || i >= len(record) {
				return ""
			}
			return record[i]
		}
		p := backfill.Person{}
		p.Email, p.Name, err = contacts.CheckPerson(cell(email), cell(name))
		if err != nil {
			bad = append(bad, badLine(line, err))
			continue
		}
		if !seen[p.Email] {
			seen[p.Email] = true
			people = append(people, p)
		}
	}
}

func badLine(line int, err error) string {
	found, ok := problem.As(err)
	if !ok {
		return fmt.Sprintf("line %d: %v", line, err)
	}
	fields, _ := found.Details["fields"].([]problem.Field)
	said := make([]string, len(fields))
	for i, f := range fields {
		said[i] = f.Field + " " + f.Message
	}
	return fmt.Sprintf("line %d: %s", line, strings.Join(said, "; "))
}
