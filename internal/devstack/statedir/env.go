package statedir

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/go-faster/errors"
)

// Setting is one KEY=value line of a file that shells and `earshot up` read.
type Setting struct{ Name, Value string }

// WriteEnv replaces the file atomically and makes it readable only by its owner.
func WriteEnv(path, comment string, settings []Setting) error {
	var text strings.Builder
	text.WriteString("# " + comment + "\n")
	for _, s := range settings {
		text.WriteString(s.Name + "=" + quoted(s.Value) + "\n")
	}
	fresh, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // with mode 0600
	if err != nil {
		return errors.Wrapf(err, "write %s", path)
	}
	defer func() { _ = os.Remove(fresh.Name()) }() // has no effect after the rename
	_, err = fresh.WriteString(text.String())
	// Without Sync the rename may reach the disk before the content.
	if err = errors.Join(err, fresh.Sync(), fresh.Close()); err == nil {
		err = os.Rename(fresh.Name(), path)
	}
	if err != nil {
		return errors.Wrapf(err, "write %s", path)
	}
	return nil
}

// ReadEnv reads a file of WriteEnv, also after manual edits. A missing file counts as
// empty.
func ReadEnv(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return nil, errors.Wrap(err, "read settings")
	}
	values := map[string]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		if name, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			values[strings.TrimSpace(name)] = unquoted(value)
		}
	}
	return values, nil
}

// quoted quotes any text as one shell word.
func quoted(value string) string {
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}

// ShellWord quotes a value only if necessary, which is easier to read.
func ShellWord(value string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+"
	if value != "" && strings.Trim(value, plain) == "" {
		return value
	}
	return quoted(value)
}

// unquoted reads a word like a shell, without expansion.
func unquoted(word string) string {
	var value strings.Builder
	quote, escaped := rune(0), false
	for _, c := range word {
		switch {
		case escaped:
			value.WriteRune(c)
			escaped = false
		case c == '\\' && quote != '\'':
			escaped = true
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case c == quote:
			quote = 0
		default:
			value.WriteRune(c)
		}
	}
	return value.String()
}
