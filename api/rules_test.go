package api_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/internal/testkit"
)

// words are the rules that no keyword can express, each with its text in the contract.
var words = map[string]string{
	"paired":          comeTogether,
	"either":          "by `contactId` or `externalUserId`, not both",
	"match":           "422 with the rule `match` otherwise",
	"future":          "is 422 with the rule `future`",
	"past":            "422 with the rule `past`",
	"after":           "422 with the rule `after`",
	"invisible":       "422 with the rule `invisible`",
	"merge":           "422 with the rule `merge`",
	"sameBoard":       "422 with the rule `sameBoard`",
	"notTarget":       "422 with the rule `notTarget`",
	"oneLevel":        "a reply to a reply is 422",
	"updated":         "422 with the rule `updated`",
	"relevance":       "`relevance` needs `q`",
	"revenue":         "That sort needs it, and no other takes it (422 otherwise).",
	"maxBytes":        "at most 256 KiB",
	"maxDepth":        "A body nests at most 1,024 levels deep (422 otherwise).",
	"unknown":         "is 422 with the rule `unknown`",
	"read_only":       "is 422 with the rule `read_only`",
	"cursor":          "A cursor belongs to the list it came from",
	"json":            "anything malformed: JSON, types, limits, cursors, enum values",
	"encoding":        "Bodies are JSON in UTF-8.",
	"invalid_url":     "absolute, https, on a public address, without a user name, a password or a fragment",
	"blocked_address": "absolute, https, on a public address, without a user name, a password or a fragment",
}

const (
	noNUL        = "No text may hold the NUL character."
	needsOwnID   = "`createContact` needs `externalUserId`"
	comeTogether = "`mrrCents` and `currency` come together"
)

var ruleInCode = regexp.MustCompile(`(?:(?:bad|f)\.Add|problem\.Invalid)\((?:[^,()]|\([^()]*\))+, "(\w+)"`)

// Each rule in the code is either a keyword or one of words. The walks compare the keywords with
// the contract.
func TestEveryRuleInTheCodeIsAKeywordOrAWordThatTheContractExplains(t *testing.T) {
	t.Parallel()
	used := map[string]string{}
	for _, pattern := range []string{
		"api/*.go", "api/contract/*.go", "internal/access/*.go", "internal/contacts/*.go", "internal/feedback/*.go", "internal/metadata/*.go",
		"internal/page/*.go", "internal/problem/*.go", "internal/slug/*.go", "internal/webhooks/*.go",
	} {
		files, err := filepath.Glob(filepath.Join(testkit.Root(), pattern))
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, m := range ruleInCode.FindAllSubmatch(text, -1) {
				if !strings.HasSuffix(file, "_test.go") {
					used[string(m[1])] = filepath.Base(file)
				}
			}
		}
	}
	require.Greater(t, len(used), 15)
	for rule, file := range used {
		if !slices.Contains(known, rule) {
			require.Contains(t, words, rule, file)
		}
	}
	for _, text := range slices.Collect(maps.Values(words)) {
		require.Contains(t, prose(t), text, "the contract doesn't explain it any more")
	}
}

// prose returns the contract as one line.
func prose(t *testing.T) string {
	t.Helper()
	return string(bytes.ReplaceAll(load(t).json, []byte(`\n`), []byte(" ")))
}
