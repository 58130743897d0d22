package e2e

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
)

func TestServeRefusesASchemaThatIsBehindAndNamesTheCommand(t *testing.T) {
	t.Parallel()
	database := testkit.EmptyDatabase(t)
	p := &program{t: t, env: append(cleanEnviron(), "DATABASE_URL="+database)}
	out, err := p.command("org", "create", "Acme")
	require.Error(t, err)
	require.Contains(t, out, "run `earshot migrate`")
	full := newProgram(t, temporalSettings(t)...)
	behind := full.launch("DATABASE_URL=" + database)
	<-behind.ended
	require.Equal(t, 1, behind.cmd.ProcessState.ExitCode())
	require.Contains(t, behind.log.String(), "earshot: the database schema is behind: run `earshot migrate`")
	require.NotContains(t, behind.log.String(), `"msg":"serving"`, "no request reaches a schema that is behind")

	out, err = p.command("migrate")
	require.NoError(t, err, out)
	require.Contains(t, out, "applied ")
	out, err = p.command("migrate")
	require.NoError(t, err, out)
	require.Equal(t, "the schema is up to date\n", out)
}

func TestServeListsEveryProblemWithItsSettings(t *testing.T) {
	t.Parallel()
	p := &program{t: t, env: append(cleanEnviron(), "EARSHOT_LOG_FORMAT=xml", "EARSHOT_RATE_LIMIT=many")}
	out, err := p.command("serve")
	require.Error(t, err)
	for _, name := range []string{"DATABASE_URL", "EARSHOT_SECRET_KEYS", "EARSHOT_EMAIL_HASH_KEY", "EARSHOT_LOG_FORMAT", "EARSHOT_RATE_LIMIT"} {
		require.Contains(t, out, name)
	}
}

func TestAnOperatorMakesListsAndRevokesKeys(t *testing.T) {
	t.Parallel()
	p := newProgram(t, temporalSettings(t)...)
	p.serve()
	var made map[string]any
	p.json(&made, "key", "create", "--name", "reporting", "--scope", "read", "--expires-in", "24h", "--json")
	p.key, _ = made["key"].(string)
	status, _ := p.send(http.MethodGet, "/v1/me", nil)
	require.Equal(t, http.StatusOK, status)
	id, _ := made["id"].(string)

	list, err := p.command("key", "list")
	require.NoError(t, err)
	require.Contains(t, list, id)
	require.NotContains(t, list, p.key)

	out, err := p.command("key", "revoke", id)
	require.NoError(t, err, out)
	require.Eventually(t, func() bool {
		status, _ := p.send(http.MethodGet, "/v1/me", nil)
		return status == http.StatusUnauthorized
	}, waitLimit, pollInterval)
	var keys []map[string]any
	p.json(&keys, "key", "list", "--json")
	require.Equal(t, "revoked", keys[len(keys)-1]["state"])
}

func TestAnOperatorAddsListsAndRemovesMembers(t *testing.T) {
	t.Parallel()
	p := newProgram(t, temporalSettings(t)...)
	p.serve()
	var added, key, me map[string]any
	p.json(&added, "member", "add", "Kim@Example.com", "--name", "Kim", "--role", "admin", "--json")
	require.Equal(t, []any{"kim@example.com", "Kim", "admin"}, []any{added["email"], added["name"], added["role"]})
	id, _ := added["id"].(string)
	out, err := p.command("member", "add", "kim@example.com", "--name", "Kim")
	require.Error(t, err)
	require.Equal(t, "earshot: A member has that e-mail address already.\n", out)
	out, err = p.command("member", "list")
	require.NoError(t, err, out)
	require.Regexp(t, id+` +kim@example.com +Kim +admin`, out)

	p.json(&key, "key", "create", "--member", "KIM@example.com", "--json")
	require.Equal(t, id, key["memberId"])
	p.key, _ = key["key"].(string)
	_, me = p.send(http.MethodGet, "/v1/me", nil)
	require.Equal(t, id, me["user"].(map[string]any)["id"])

	out, err = p.command("member", "remove", id)
	require.NoError(t, err, out)
	require.Contains(t, out, "the API keys are revoked")
	require.Eventually(t, func() bool {
		status, _ := p.send(http.MethodGet, "/v1/me", nil)
		return status == http.StatusUnauthorized
	}, waitLimit, pollInterval)
	var left []map[string]any
	p.json(&left, "member", "list", "--json")
	require.Len(t, left, 1)
	out, err = p.command("member", "remove", left[0]["id"].(string))
	require.Error(t, err)
	require.Contains(t, out, "the organization's only owner")

	out, err = p.command("member", "erase", "KIM@example.com")
	require.NoError(t, err, out)
	require.Equal(t, id+" is erased\n", out)
	out, err = p.command("member", "erase", "kim@example.com")
	require.Error(t, err)
	require.Contains(t, out, "There is no such removed member")
	out, err = p.command("member", "erase", left[0]["id"].(string))
	require.Error(t, err)
	require.Contains(t, out, "remove the member first")

	var trail []map[string]any
	p.json(&trail, "audit", "--resource", id, "--json")
	require.Len(t, trail, 3)
	require.Equal(t, []any{"eraseMember", "deleteMember", "createMember"}, []any{trail[0]["action"], trail[1]["action"], trail[2]["action"]})
	require.Equal(t, map[string]any{"kind": "operator", "memberId": nil, "apiKeyId": nil}, trail[0]["actor"])
	out, err = p.command("audit", "--actor", "operator", "--actions", "createApiKey,rotateApiKey", "--limit", "1")
	require.NoError(t, err, out)
	require.Regexp(t, `operator +createApiKey +key_`, out)
}

func TestAnOperatorSwitchesEMailsToEndUsersOnAndTellsOfBounces(t *testing.T) {
	t.Parallel()
	p := newProgram(t, temporalSettings(t)...)
	p.serve()
	var organization, told map[string]any
	out, err := p.command("org", "update", "--subscriber-mails")
	require.Error(t, err)
	require.Contains(t, out, "--subscriber-mails-allowed", "a new organization may not")
	p.json(&organization, "org", "update", "--subscriber-mails", "--subscriber-mails-allowed", "--json")
	require.Equal(t, true, organization["subscriberMails"])
	require.Equal(t, true, organization["subscriberMailsAllowed"])
	p.json(&organization, "org", "update", "--subscriber-mails=false", "--json")
	require.Equal(t, false, organization["subscriberMails"])
	p.json(&told, "mail", "bounce", "gone@example.com", "Gone@example.com ", "other@example.com", "--json")
	require.Equal(t, 2.0, told["suppressed"])
	out, err = p.command("mail", "bounce", "gone@example.com", "nonsense")
	require.Error(t, err)
	require.Contains(t, out, "addresses[1] must be an e-mail address")
	require.NotContains(t, out, "nonsense", "an address is in no message")
}

func TestACommandWithInvalidInputReportsTheProblem(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	for want, args := range map[string][]string{
		"plan must be free, pro or business":     {"org", "create", "Acme", "--plan", "gold"},
		"scope must be read or read:write":       {"key", "create", "--scope", "write"},
		"is not the id of an API key":            {"key", "revoke", "nonsense"},
		"--org nonsense is not the id":           {"key", "list", "--org", "nonsense"},
		"role must be owner, admin or member":    {"member", "add", "kim@example.com", "--name", "Kim", "--role", "boss"},
		"email must be an e-mail address":        {"member", "add", "kim", "--name", "Kim"},
		`required flag(s) "name" not set`:        {"member", "add", "kim@example.com"},
		"nor the e-mail address of a member":     {"member", "remove", "nonsense"},
		"There is no such member":                {"member", "remove", "usr_00000000000000000000000000"},
		"address of a removed member":            {"member", "erase", "nonsense"},
		"There is no such member in":             {"key", "create", "--member", "nobody@example.com"},
		"There is no such API key":               {"key", "revoke", "key_00000000000000000000000000"},
		"accepts 1 arg(s), received 0":           {"org", "create"},
		"--since yesterday is no moment":         {"audit", "--since", "yesterday"},
		"name must have at least 1 character":    {"key", "create", "--name", ""},
		"expiresAt must lie in the future":       {"key", "create", "--expires-in", "-1h"},
		"read the search attributes: open /none": {"temporal", "setup", "--file", "/none"},
	} {
		out, err := p.command(args...)
		require.Error(t, err, "%v", args)
		require.Contains(t, out, want)
		require.True(t, strings.HasPrefix(out, "earshot: "), out)
	}
}

func TestSettingTemporalUpCanBeRepeated(t *testing.T) {
	t.Parallel()
	p := &program{t: t, env: append(cleanEnviron(), temporalSettings(t)...)}
	for _, args := range [][]string{nil, {"--file", repository + "/temporal-dev.yaml"}} {
		out, err := p.command(append([]string{"temporal", "setup"}, args...)...)
		require.NoError(t, err, out)
		require.Equal(t, "every search attribute is registered\n", out)
	}
}

func TestShellsCompleteTheCommands(t *testing.T) {
	t.Parallel()
	p := &program{t: t, env: cleanEnviron()}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		out, err := p.command("completion", shell)
		require.NoError(t, err, out)
		require.Contains(t, out, "earshot")
	}
}

func TestAnOperatorReplacesASealingKey(t *testing.T) {
	t.Parallel()
	p := newProgram(t, temporalSettings(t)...)
	p.serve()
	receiver := testkit.NewReceiver(t)
	p.subscribe(receiver)
	lost := p.must(http.MethodPost, "/v1/webhooks", map[string]any{"url": "https://example.com", "events": []string{"post.created"}})
	kept := p.env
	rotate := func(keys ...string) {
		p.env = append(slices.Clone(kept), "EARSHOT_SECRET_KEYS="+strings.Join(keys, ","))
	}
	key := func(name, letter string) string {
		return name + ":" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, 32)))
	}

	rotate(key("k2", "2"), key("test", "k"))
	var done, again map[string]any
	p.json(&done, "secrets", "rotate", "--json")
	require.Equal(t, map[string]any{"rotated": 2.0, "widgetSecretsRotated": 0.0, "submissionsRotated": 0.0, "left": 0.0, "keyId": "k2"}, done)
	p.json(&again, "secrets", "rotate", "--json")
	require.Equal(t, map[string]any{"rotated": 0.0, "widgetSecretsRotated": 0.0, "submissionsRotated": 0.0, "left": 0.0, "keyId": "k2"}, again)

	rotate(key("k3", "3"))
	out, err := p.command("secrets", "rotate")
	require.Error(t, err)
	require.Contains(t, out, "0 webhooks were sealed anew with k3, 2 are left")
	require.Contains(t, out, "\n  "+lost)
	out, err = p.command("secrets", "list")
	require.NoError(t, err, out)
	require.Regexp(t, `k2 +2 +0 +0 +false`, out)
	rotate()
	out, err = p.command("secrets", "list")
	require.Error(t, err)
	require.Contains(t, out, "EARSHOT_SECRET_KEYS is missing")
}

// The commands come from docs/operating.md. Votes of a deleted contact stay, without a contact.
func TestAnOperatorMakesContactsOfPeopleWithOldActivity(t *testing.T) {
	t.Parallel()
	p := newProgram(t, temporalSettings(t)...)
	p.serve()
	p.board = p.must(http.MethodPost, "/v1/boards", map[string]any{"name": "Ideas"})
	post := p.post()
	for _, email := range []string{"ada@example.com", "bo@example.com"} {
		contact := p.must(http.MethodPost, "/v1/contacts", map[string]any{"email": email})
		p.must(http.MethodPost, "/v1/posts/"+post+"/votes", map[string]any{"contactId": contact})
		p.must(http.MethodDelete, "/v1/contacts/"+contact, nil)
	}
	before := time.Now().UTC().Format(time.RFC3339Nano)
	documented := readBlocks(t, "operating.md")
	file := filepath.Join(t.TempDir(), "people.csv")
	table := "\xef\xbb\xbfName,E-Mail,EMAIL\nAda,x, ADA@example.com\n,x,nobody@example.com\nEve,x,not an address\nAda again,x,ada@example.com\n,x,\n"
	require.NoError(t, os.WriteFile(file, []byte(table), 0o600))
	said := strings.NewReplacer("2026-03-12", before, "people.csv", file)
	arguments := strings.Fields(said.Replace(documented.named("backfill")))[1:]
	out, err := p.command(arguments...)
	require.NoError(t, err, out)
	require.Contains(t, out, "line 4: email must be an e-mail address\n")
	require.Contains(t, out, "line 6: email ")
	require.NotContains(t, out, "not an address")
	require.Contains(t, out, "completed: 2 of 2 addresses looked for, 1 with activity before")
	require.Contains(t, out, "1 contacts created, 0 were there, 0 left out without room in the plan; 2 lines were no addresses\n")
	made := p.first("/v1/contacts")
	require.Equal(t, []any{"ada@example.com", "Ada", "public_vote", "legacy_inferred"},
		[]any{made["email"], made["name"], made["source"], made["consentBasis"]})

	id := regexp.MustCompile(`bkf_\w{26}`).FindString(out)
	var status map[string]any
	p.json(&status, strings.Fields(strings.ReplaceAll(documented.named("backfill-status"), `"$BACKFILL"`, id))[1:]...)
	for member, value := range map[string]any{
		"id": id, "status": "completed", "addresses": 2.0, "left": 0.0, "matched": 1.0, "created": 1.0, "existed": 0.0, "leftOut": 0.0, "invalid": 2.0,
	} {
		require.Equal(t, value, status[member], member)
	}
	p.json(&status, append(slices.Clone(arguments), "--detach", "--json")...)
	require.Equal(t, "running", status["status"])
	require.Eventually(t, func() bool {
		var now map[string]any
		p.json(&now, "contacts", "backfill", "status", fmt.Sprint(status["id"]), "--json")
		return now["status"] == "completed" && now["existed"] == 1.0
	}, waitLimit, pollInterval)

	for _, refused := range []struct {
		words     string
		arguments []string
	}{
		{`required flag(s) "before" not set`, []string{file}},
		{"--before soon is no moment", []string{file, "--before", "soon"}},
		{"must not be in the future", []string{file, "--before", "2999-01-01"}},
		{"no such file", []string{file + "x", "--before", before}},
		{"there is no backfill bkf_", []string{"status", id[:len(id)-4] + "0000"}},
	} {
		out, err := p.command(append([]string{"contacts", "backfill"}, refused.arguments...)...)
		require.Error(t, err, refused.words)
		require.Contains(t, out, refused.words)
	}
	require.NoError(t, os.WriteFile(file, []byte("ada@example.com\nbo@example.com\n"), 0o600))
	out, err = p.command(arguments...)
	require.Error(t, err)
	require.Contains(t, out, "the first line has to name the columns")
}
