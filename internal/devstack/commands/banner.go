package commands

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"earshot/internal/config"
	"earshot/internal/devstack/statedir"
)

// banner prints the addresses and the first commands to paste. Only the run that created a key
// prints it; later commands read it from dev.env.
func (u *up) banner(took time.Duration) {
	devEnv := statedir.ShortPath(u.Dir.DevEnv())
	var b strings.Builder
	fmt.Fprintf(&b, "\nEarshot is up after %s.\n\n", inSeconds(took))
	row := func(name, value string) { fmt.Fprintf(&b, "  %-13s %s\n", name, value) }
	row("API", u.baseURL())
	if u.demo != "" {
		row("Public board", u.demo)
	}
	row("API docs", u.baseURL()+"/v1/docs")
	row("Temporal UI", u.temporal.UIURL())
	row("Metrics", "http://"+u.metricsAddress()+"/metrics")
	row("Log", statedir.ShortPath(serviceLog(u.Dir)))
	row("E-mail", u.eMail())
	row("Settings", devEnv+"  (keys and addresses; in a shell: set -a; . "+statedir.ShellWord(dotted(devEnv))+")")
	if u.keys.fresh {
		row("API key", u.keys.write+"  (shown only now)")
	} else {
		row("API key", "in "+devEnv)
	}
	b.WriteString("\nTry it:\n\n")
	for _, line := range u.examples() {
		b.WriteString("  " + line + "\n")
	}
	fmt.Fprintf(&b, "\nThe whole story, with a delivery that fails and is retried: %s\n", u.quickstart())
	if u.Detached {
		fmt.Fprintf(&b, "It runs in the background; this stops it: %s\n", u.Dir.Command("down"))
	} else {
		b.WriteString("Ctrl-C stops everything; the data stays.\n")
	}
	u.say("%s", strings.TrimSuffix(b.String(), "\n"))
}

// examples returns commands that can be pasted repeatedly.
func (u *up) examples() []string {
	lines, key, base := []string(nil), u.keys.write, u.baseURL()
	if !u.keys.fresh {
		lines = append(lines, ". "+statedir.ShellWord(dotted(statedir.ShortPath(u.Dir.DevEnv()))))
		key, base = "$"+statedir.KeyVariable, "$EARSHOT_BASE_URL"
	}
	header := `-H "Authorization: Bearer ` + key + `" `
	return append(lines,
		"curl "+header+base+"/v1/me",
		"curl "+header+`-H "Content-Type: application/json" -d '{"name":"Feature requests"}' `+base+"/v1/boards",
	)
}

// eMail describes the destination of e-mails.
func (u *up) eMail() string {
	settings := config.Environ(u.settings())
	server, _ := settings.LookupEnv(config.SMTPURL)
	dir, _ := settings.LookupEnv(config.MailDir)
	switch {
	case server != "":
		return "is sent through " + config.SMTPURL
	case dir != "":
		return statedir.ShortPath(dir) + "  (written there, not sent)"
	default:
		return "is not sent: " + config.MailDir + " is empty"
	}
}

func (u *up) quickstart() string {
	line := statedir.ShellWord(statedir.ShortPath(filepath.Join(u.root, "examples", "quickstart.sh")))
	if string(u.Dir) != filepath.Join(u.root, ".earshot") {
		return statedir.Variable + "=" + statedir.ShellWord(statedir.ShortPath(string(u.Dir))) + " " + line
	}
	return line
}

// dotted prefixes a bare name with "./", because the shell's "." command would look it up in PATH.
func dotted(path string) string {
	if strings.Contains(path, "/") {
		return path
	}
	return "./" + path
}
