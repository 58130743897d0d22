package migrate

import (
	"io/fs"
	"regexp"
	"strings"

	atlas "ariga.io/atlas/sql/migrate"
	"ariga.io/atlas/sql/sqltool"
	"github.com/go-faster/errors"
)

// File is one migration.
type File struct {
	Name string
	// Transaction reports that the whole file is one transaction. In a file with `-- +goose NO
	// TRANSACTION`, each statement takes effect separately.
	Transaction bool
	Statements  []string
	// Contract is the text behind `-- contract:`, the reason why the file may remove something.
	Contract string
}

var (
	outside  = regexp.MustCompile(`(?m)^-- \+goose NO TRANSACTION\s*$`)
	contract = regexp.MustCompile(`(?m)^-- contract: *(\S.*)$`)
)

// Files returns the migrations of a directory, oldest first.
func Files(dir fs.FS) ([]File, error) {
	names, err := fs.Glob(dir, "*.sql")
	if err != nil {
		return nil, errors.Wrap(err, "list the migrations")
	}
	files := make([]File, len(names))
	for i, name := range names {
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, errors.Wrap(err, "read a migration")
		}
		// Apart from where the goose of this file's statements ends, the two read alike.
		statements, err := (&sqltool.GooseFile{LocalFile: atlas.NewLocalFile(name, text)}).Stmts()
		if err != nil {
			return nil, errors.Wrapf(err, "take the statements of %s apart", name)
		}
		files[i] = File{Name: name, Transaction: !outside.Match(text), Statements: statements}
		if m := contract.FindSubmatch(text); m != nil {
			files[i].Contract = strings.TrimSpace(string(m[1]))
		}
	}
	return files, nil
}
