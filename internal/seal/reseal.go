package seal

// Resealed tells what became of the rows that weren't sealed with the first key.
type Resealed[ID any] struct {
	Done int
	// Unreadable are those whose key isn't known, or that are damaged.
	Unreadable []ID
}

// ResealAll seals rows anew, page by page. Next reads the page behind an id, and none at the end; one
// seals a row anew where that has to be, and returns how many rows it changed, or that the row can't be
// opened. It may end at any moment and be done again.
func ResealAll[Row, ID any](next func(after ID) ([]Row, error), id func(Row) ID, one func(Row) (n int, readable bool, err error)) (r Resealed[ID], err error) {
	for last := *new(ID); ; {
		rows, err := next(last)
		if err != nil || len(rows) == 0 {
			return r, err
		}
		for _, row := range rows {
			n, readable, err := one(row)
			if err != nil {
				return r, err
			}
			if !readable {
				r.Unreadable = append(r.Unreadable, id(row))
			}
			r.Done += n
		}
		last = id(rows[len(rows)-1])
	}
}
