package config

import (
	"os"
	"strings"

	"github.com/caarlos0/env/v11"
	"github.com/go-faster/errors"
)

// fileSuffix makes of a setting's variable the one that names a file with its value.
// Secrets of Compose and Kubernetes are files: there no value stands in an
// environment, which whoever looks at the process sees.
const fileSuffix = "_FILE"

// read returns what the environment has for the names, in itself or in the files
// that it points to, and a problem for each that can't be read. An empty variable
// is as good as none, because deployments pass through what nobody has set.
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
			// Editors and echo end a file with a newline.
			value = strings.TrimRight(string(text), "\r\n")
		}
		if value != "" {
			values[name] = value
		}
	}
	return values, problems
}

// Lookup reads one setting without the others, for commands that need no more. It is
// the default when nothing sets it.
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
