package main

import (
	"crypto/rand"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-faster/errors"
)

// setting is one KEY=value line of a file that shells and `earshot up` read.
type setting struct{ name, value string }

// writeEnvFile replaces the file atomically and makes it readable only by its owner.
func writeEnvFile(path, comment string, settings []setting) error {
	var text strings.Builder
	text.WriteString("# " + comment + "\n")
	for _, s := range settings {
		text.WriteString(s.name + "=" + quoted(s.value) + "\n")
	}
	fresh, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // with mode 0600
	if err != nil {
		return errors.Wrapf(err, "write %s", path)
	}
	defer func() { _ = os.Remove(fresh.Name()) }() // has no effect after the rename
	_, err = fresh.WriteString(text.String())
	if err == nil {
		err = fresh.Sync() // without it the rename may reach the disk before the content
	}
	if closed := fresh.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(fresh.Name(), path)
	}
	if err != nil {
		return errors.Wrapf(err, "write %s", path)
	}
	return nil
}

// readEnvFile reads a file of writeEnvFile, also after manual edits. A missing file counts as
// empty.
func readEnvFile(path string) (map[string]string, error) {
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

// shellWord quotes a value only if necessary, which is easier to read.
func shellWord(value string) string {
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

// secretNames are the settings in secrets.env.
var secretNames = []string{"EARSHOT_SECRET_KEYS", "EARSHOT_EMAIL_HASH_KEY"}

// loadSecrets returns the deployment's secrets. It creates them at the first call for the directory
// and never replaces them. Other secrets can't read the data in the database.
func loadSecrets(d stateDir) ([]setting, error) {
	values, err := readEnvFile(d.secretsEnv())
	if err != nil {
		return nil, err
	}
	if len(values) == 0 {
		if _, err := os.Stat(d.postgres()); err == nil {
			return nil, errors.Errorf("%s is gone, but the database holds webhook secrets that only its keys open: "+
				"put it back, or begin anew with `%s`", d.secretsEnv(), d.command("reset"))
		}
		made := []setting{{secretNames[0], "dev:" + random32()}, {secretNames[1], random32()}}
		return made, writeEnvFile(d.secretsEnv(), "Made by `earshot up`. Without these keys the webhook secrets in the database are lost.", made)
	}
	var found []setting
	for _, name := range secretNames {
		if values[name] == "" {
			return nil, errors.Errorf("%s lacks %s: put it back, or begin anew with `%s`", d.secretsEnv(), name, d.command("reset"))
		}
		found = append(found, setting{name, values[name]})
	}
	return found, nil
}

// random32 returns 32 random bytes in base64, the format of both secrets.
func random32() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails: without randomness it ends the program
	return base64.StdEncoding.EncodeToString(key)
}
