package config

import (
	"os"
	"strings"

	"github.com/caarlos0/env/v11"
	"github.com/go-faster/errors"
)

// fileSuffix turns the variable of a setting into one that names a file with the value. Compose and
// Kubernetes provide secrets as files. A file keeps the value out of the environment, which other
// processes can inspect.
const fileSuffix = "_FILE"

// read returns the values of the names, from variables or from the files that they point to. It
// returns a problem for each value that can't be read. An empty variable counts as unset, because
// deployments pass through variables without a value.
func read(environ []string, names ...string) (values map[string]string, problems []string) {
	all := env.ToMap(environ)
	values = map[string]string{}
	for _, name := range names {
		value, path := all[name], all[name+fileSuffix]
		switch {
		case value != "" && path != "":
			problems = append(problems, name+": is set twice, by itself and by "+name+fileSuffix+": leave one of them out")
			continue
		case path != "":
			text, err := os.ReadFile(path)
			if err != nil {
				problems = append(problems, name+": "+name+fileSuffix+" names a file that can't be read: "+err.Error())
				continue
			}
			// Editors and echo add a newline at the end of a file.
			value = strings.TrimRight(string(text), "\r\n")
		}
		if value != "" {
			values[name] = value
		}
	}
	return values, problems
}

// Lookup reads one setting without the others. An unset setting has its default.
func Lookup(environ []string, name string) (string, error) {
	values, problems := read(environ, name)
	if len(problems) > 0 {
		return "", errors.New(strings.Join(problems, "; "))
	}
	if value := values[name]; value != "" {
		return value, nil
	}
	for _, s := range Settings() {
		if s.Name == name {
			return s.Default, nil
		}
	}
	return "", nil
}
