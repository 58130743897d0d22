package seal

// Resealed is the result for the rows that weren't sealed with the first key.
type Resealed[ID any] struct {
	Done int
	// Unreadable has the rows with an unknown key and the damaged ones.
	Unreadable []ID
}

// ResealAll seals rows again, page by page. It may be interrupted at any time and repeated.
//
// The function next returns the page after an id, and an empty page at the end. The function one
// seals a row again if necessary. It returns the number of changed rows, and readable is false if
// the row can't be opened.
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
