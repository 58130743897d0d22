package commands

import (
	"crypto/rand"
	"encoding/base64"
	"os"

	"github.com/go-faster/errors"

	"earshot/internal/devstack/statedir"
)

// secretNames are the settings in secrets.env.
var secretNames = []string{"EARSHOT_SECRET_KEYS", "EARSHOT_EMAIL_HASH_KEY"}

// loadSecrets returns the deployment's secrets. It creates them at the first call for the directory
// and never replaces them. Other secrets can't read the data in the database.
func loadSecrets(d statedir.Dir) ([]statedir.Setting, error) {
	values, err := statedir.ReadEnv(secretsEnv(d))
	if err != nil {
		return nil, err
	}
	if len(values) == 0 {
		if _, err := os.Stat(postgresDir(d)); err == nil {
			return nil, errors.Errorf("%s is gone, but the database holds webhook secrets that only its keys open: "+
				"put it back, or begin anew with `%s`", secretsEnv(d), d.Command("reset"))
		}
		made := []statedir.Setting{{Name: secretNames[0], Value: "dev:" + random32()}, {Name: secretNames[1], Value: random32()}}
		return made, statedir.WriteEnv(secretsEnv(d), "Made by `earshot up`. Without these keys the webhook secrets in the database are lost.", made)
	}
	var found []statedir.Setting
	for _, name := range secretNames {
		if values[name] == "" {
			return nil, errors.Errorf("%s lacks %s: put it back, or begin anew with `%s`", secretsEnv(d), name, d.Command("reset"))
		}
		found = append(found, statedir.Setting{Name: name, Value: values[name]})
	}
	return found, nil
}

// random32 returns 32 random bytes in base64, the format of both secrets.
func random32() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails: without randomness it ends the program
	return base64.StdEncoding.EncodeToString(key)
}
