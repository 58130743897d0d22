package devstack

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/go-faster/errors"
	"github.com/mattn/go-isatty"

	"earshot/internal/needs"
)

// InstallVariable permits the installation of Postgres with apt-get when it is 1.
const InstallVariable = "EARSHOT_INSTALL"

// permission is nil when Postgres may be installed: the environment says so, this is
// CI, or the person at the terminal does. The error says what to run.
func permission(ctx context.Context) error {
	ci, _ := strconv.ParseBool(os.Getenv("CI")) // as every system of CI sets it
	if ci || os.Getenv(InstallVariable) == "1" {
		return nil
	}
	if !isatty.IsTerminal(os.Stdin.Fd()) {
		return errors.Errorf("no Postgres found, and nobody is here to agree to installing one; run\n%s\nor permit it: make up INSTALL=1, earshot up --install or %s=1",
			installation(), InstallVariable)
	}
	return agreed(ctx, os.Stdin, os.Stderr)
}

// installation is what would be run, a line each.
func installation() string {
	var lines []string
	for _, args := range installCommands(needs.Named(postgresName).Debian) {
		lines = append(lines, "  apt-get "+strings.Join(args, " "))
	}
	return strings.Join(lines, "\n")
}

// agreed asks a person.
func agreed(ctx context.Context, in io.Reader, out io.Writer) error {
	fmt.Fprintf(out, "\nNo Postgres found. To install one from the system's packages, this would be run as root:\n%s\nType yes to go on: ", installation())
	answer := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(in).ReadString('\n') // without an answer it isn't yes
		answer <- text
	}()
	select {
	case <-ctx.Done(): // the read ends with the program
		return ctx.Err()
	case text := <-answer:
		if strings.TrimSpace(text) != "yes" {
			return errors.New("nothing was installed")
		}
		return nil
	}
}
