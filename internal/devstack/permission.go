package devstack

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/go-faster/errors"
	"github.com/mattn/go-isatty"

	"earshot/internal/needs"
)

// InstallVariable permits the installation of Postgres with apt-get if it is 1.
const InstallVariable = "EARSHOT_INSTALL"

// permission returns nil if Postgres may be installed. The environment, a CI system, or the user at
// the terminal can permit it. The error lists the commands to run.
func permission(ctx context.Context) error {
	ci, _ := strconv.ParseBool(os.Getenv("CI")) // set by every CI system
	if ci || os.Getenv(InstallVariable) == "1" {
		return nil
	}
	var lines []string
	for _, args := range installCommands(needs.Named(postgresName).Debian) {
		lines = append(lines, "  apt-get "+strings.Join(args, " "))
	}
	commands := strings.Join(lines, "\n")
	if !isatty.IsTerminal(os.Stdin.Fd()) {
		return errors.Errorf("no Postgres found, and nobody is here to agree to installing one; run\n%s\nor permit it: make up INSTALL=1, earshot up --install or %s=1",
			commands, InstallVariable)
	}
	fmt.Fprintf(os.Stderr, "\nNo Postgres found. To install one from the system's packages, this would be run as root:\n%s\nType yes to go on: ", commands)
	answer := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(os.Stdin).ReadString('\n') // no input counts as no
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
