package access_test

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"math/rand"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"earshot/ent/db"
	"earshot/ent/db/user"
	"earshot/internal/access"
	"earshot/internal/problem"
	"earshot/internal/publicid"
	"earshot/internal/testkit/apptest"
)

func TestAnOrganization(t *testing.T) {
	t.Parallel()
	together(t, map[string]func(*testing.T, *tenant){
		"gets a name, slug and color, and keeps the omitted ones":            updateOrganization,
		"has a slug of its own":                                              organizationSlug,
		"is refused bad values, all at once":                                 badOrganizationPatch,
		"has a logo that is replaced and taken away":                         replaceLogo,
		"has no logo that isn't a small PNG or JPEG":                         badLogos,
		"is found by its slug or its id, and by no other's":                  findWorkspace,
		"can be changed while its bills aren't paid":                         updateReadOnly,
		"doesn't change when a patch repeats its values":                     updateTwice,
		"is changed by its owners and admins, and read by all its members":   organizationByAPI,
		"switches e-mails to end-users on once the operator allows it":       allowMails,
		"has blocked words, each once, and is refused more than it may have": organizationWords,
	})
}

func (n *tenant) update(t *testing.T, in access.OrganizationPatch) error {
	t.Helper()
	_, err := n.App.Access.ArrangeOrganization(n.Context(t.Context()), in)
	return err
}

func picture(t *testing.T, width, height int) []byte {
	t.Helper()
	var file bytes.Buffer
	require.NoError(t, png.Encode(&file, image.NewGray(image.Rect(0, 0, width, height))))
	return file.Bytes()
}

func updateOrganization(t *testing.T, n *tenant) {
	slug := n.slug()
	require.NoError(t, n.update(t, access.OrganizationPatch{Name: new(" Acme Labs "), Slug: &slug, Color: new("#AbCdEf")}))
	got, err := n.App.Access.ArrangeOrganization(n.Context(t.Context()), access.OrganizationPatch{})
	require.NoError(t, err)
	require.Equal(t, "Acme Labs", got.Name)
	require.Equal(t, slug, *got.Slug)
	require.Equal(t, "#abcdef", *got.Color)
	me := n.Get(t, "/v1/me")["organization"].(object)
	require.Equal(t, slug, me["slug"])
	require.NoError(t, n.update(t, access.OrganizationPatch{Slug: new(""), Color: new("")}))
	row, err := n.App.Access.Workspace(t.Context(), n.Organization.ID.String())
	require.NoError(t, err)
	require.Nil(t, row.Slug)
	require.Nil(t, row.Color)
	require.Equal(t, "Acme Labs", row.Name)
}

func updateTwice(t *testing.T, n *tenant) {
	slug := n.slug()
	in := access.OrganizationPatch{
		Name: new("Acme Labs"), Slug: &slug, Color: new("#abcdef"), Logo: picture(t, 16, 16), PublicClosed: new(true),
	}
	lines := func() int {
		return strings.Count(strings.Join(n.Contents(t, "audit_entries"), ""), "updateOrganization")
	}
	require.NoError(t, n.update(t, access.OrganizationPatch{Slug: new(""), Color: new(""), Logo: []byte{}}), "none is there")
	require.Zero(t, lines())
	require.NoError(t, n.update(t, in))
	require.Equal(t, 1, lines())
	unchanged := n.Watch(t)
	require.NoError(t, n.update(t, in))
	require.NoError(t, n.update(t, access.OrganizationPatch{}))
	unchanged(t)
	require.Equal(t, 1, lines())
	require.NoError(t, n.update(t, access.OrganizationPatch{Logo: []byte{}}))
	require.Equal(t, 2, lines(), "a logo is a change, too")
}

func organizationByAPI(t *testing.T, n *tenant) {
	slug := n.slug()
	require.NoError(t, n.update(t, access.OrganizationPatch{Slug: &slug}))
	admin := n.As(t, n.enlist(t, user.RoleAdmin))
	member := n.As(t, n.enlist(t, user.RoleMember))
	read := member.Do(t, http.MethodGet, "/v1/organization", nil)
	require.Equal(t, []any{"Acme", slug, nil, false, []any{}},
		[]any{read.Data()["name"], read.Data()["slug"], read.Data()["color"], read.Data()["publicClosed"], read.Data()["blockedWords"]})
	change := object{"color": "#0F766E", "publicClosed": true, "blockedWords": []string{"casino"}}
	a := member.Refused(t, "ERR_FORBIDDEN", http.MethodPatch, "/v1/organization", change)
	require.Equal(t, "role_insufficient", a.Details()["reason"])
	a = admin.Refused(t, "ERR_VALIDATION", http.MethodPatch, "/v1/organization", object{"name": "Other", "slug": "other"})
	require.Equal(t, []string{"name read_only", "slug read_only"}, apptest.FieldRules(a), "the operator sets them")
	changed := admin.Do(t, http.MethodPatch, "/v1/organization", change, "If-Match", read.Header.Get("ETag"))
	require.Equal(t, []any{"Acme", slug, "#0f766e", true, []any{"casino"}},
		[]any{changed.Data()["name"], changed.Data()["slug"], changed.Data()["color"], changed.Data()["publicClosed"], changed.Data()["blockedWords"]})
	stale := admin.Do(t, http.MethodPatch, "/v1/organization", object{"publicClosed": false}, "If-Match", read.Header.Get("ETag"))
	require.Equal(t, http.StatusPreconditionFailed, stale.Status)
	again := admin.Do(t, http.MethodPatch, "/v1/organization", object{"color": nil}, "If-Match", changed.Header.Get("ETag"))
	require.Equal(t, http.StatusOK, again.Status, "%s", again.Raw)
	require.Nil(t, again.Data()["color"])
	require.Equal(t, true, again.Data()["publicClosed"])
}

func allowMails(t *testing.T, n *tenant) {
	on, off := true, false
	read := n.Get(t, "/v1/organization")
	require.Equal(t, []any{false, false}, []any{read["subscriberMails"], read["subscriberMailsAllowed"]})
	unchanged := n.Watch(t)
	a := n.Refused(t, "ERR_FORBIDDEN", http.MethodPatch, "/v1/organization", object{"subscriberMails": true, "color": "#0F766E"})
	require.Equal(t, "subscriber_mails_not_allowed", a.Details()["reason"])
	n.Refused(t, "ERR_VALIDATION", http.MethodPatch, "/v1/organization", object{"subscriberMails": false, "subscriberMailsAllowed": true})
	unchanged(t)
	require.True(t, problem.Is(n.update(t, access.OrganizationPatch{SubscriberMails: &on}), problem.Forbidden), "nor the operator by mistake")

	require.NoError(t, n.update(t, access.OrganizationPatch{SubscriberMailsAllowed: &on}))
	read = n.Patch(t, "/v1/organization", object{"subscriberMails": true})
	require.Equal(t, []any{true, true}, []any{read["subscriberMails"], read["subscriberMailsAllowed"]})
	require.NoError(t, n.update(t, access.OrganizationPatch{SubscriberMailsAllowed: &off}))
	// The setting stays, and a patch may repeat it.
	read = n.Patch(t, "/v1/organization", object{"subscriberMails": true})
	require.Equal(t, []any{true, false}, []any{read["subscriberMails"], read["subscriberMailsAllowed"]})
}

// enlist creates a member with a role.
func (n *tenant) enlist(t *testing.T, role user.Role) *db.User {
	t.Helper()
	m, err := n.App.Access.EnlistMember(n.Context(t.Context()),
		access.NewMember{Email: string(role) + "@example.com", Name: "Kim", Role: string(role)})
	require.NoError(t, err)
	return m
}

func organizationWords(t *testing.T, n *tenant) {
	given := []string{" Casino ", "cafe\u0301", "CASINO", "Café", "cheap  pills", "cheap pills"}
	read := n.Patch(t, "/v1/organization", object{"blockedWords": given})
	require.Equal(t, []any{"Casino", "cafe\u0301", "cheap  pills"}, read["blockedWords"])
	unchanged := n.Watch(t)
	n.Patch(t, "/v1/organization", object{"blockedWords": given})
	unchanged(t)
	n.Refused(t, "ERR_VALIDATION", http.MethodPatch, "/v1/organization", object{"blockedWords": []string{"\u200b"}})
	err := n.update(t, access.OrganizationPatch{BlockedWords: &[]string{"", "a\nb", strings.Repeat("é", 81), "\u00ad"}})
	require.Equal(t, []string{"blockedWords[0]", "blockedWords[1]", "blockedWords[2]", "blockedWords[3]"}, fieldsOf(t, err))
	many := make([]string, 201)
	for i := range many {
		many[i] = fmt.Sprint("word", i)
	}
	require.Equal(t, []string{"blockedWords"}, fieldsOf(t, n.update(t, access.OrganizationPatch{BlockedWords: &many})))
	unchanged(t)
	require.NoError(t, n.update(t, access.OrganizationPatch{BlockedWords: &[]string{}}), "none")
	require.Equal(t, []any{}, n.Get(t, "/v1/organization")["blockedWords"])
}

// slug returns a slug that no other tenant of the service has.
func (n *tenant) slug() string {
	return strings.ReplaceAll(n.Organization.ID.String(), "_", "-")
}

func organizationSlug(t *testing.T, n *tenant) {
	slug, stranger := n.slug(), n.on(t, "business")
	require.NoError(t, n.update(t, access.OrganizationPatch{Slug: &slug}))
	err := stranger.update(t, access.OrganizationPatch{Slug: &slug, Name: new("Other")})
	require.True(t, problem.Is(err, problem.Conflict), "%v", err)
	in := acme
	in.Slug = slug
	_, _, err = n.App.Access.CreateOrganization(t.Context(), in)
	require.True(t, problem.Is(err, problem.Conflict), "%v", err)
	in.Slug = slug + "-2"
	made, _, err := n.App.Access.CreateOrganization(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, in.Slug, *made.Slug)
	require.NoError(t, n.update(t, access.OrganizationPatch{Slug: &slug}), "its own")
}

func badOrganizationPatch(t *testing.T, n *tenant) {
	unchanged := n.Watch(t)
	err := n.update(t, access.OrganizationPatch{
		Name: new(" "), Slug: new("a--b"), Color: new("red"), Logo: []byte("<svg onload=alert(1)>"),
	})
	require.Equal(t, []string{"name", "slug", "color", "logo"}, fieldsOf(t, err))
	unchanged(t)
}

func replaceLogo(t *testing.T, n *tenant) {
	ctx := n.Context(t.Context())
	none, err := n.App.Access.Logo(ctx)
	require.NoError(t, err)
	require.Nil(t, none)
	for _, width := range []int{16, 1024} {
		file := picture(t, width, 16)
		require.NoError(t, n.update(t, access.OrganizationPatch{Logo: file}))
		logo, err := n.App.Access.Logo(ctx)
		require.NoError(t, err)
		require.Equal(t, file, logo.Content)
		require.Equal(t, "image/png", logo.MediaType)
	}
	require.NoError(t, n.update(t, access.OrganizationPatch{}))
	logo, err := n.App.Access.Logo(ctx)
	require.NoError(t, err)
	require.NotNil(t, logo)
	require.NoError(t, n.update(t, access.OrganizationPatch{Logo: []byte{}}))
	logo, err = n.App.Access.Logo(ctx)
	require.NoError(t, err)
	require.Nil(t, logo)
}

func badLogos(t *testing.T, n *tenant) {
	var animated bytes.Buffer
	require.NoError(t, gif.Encode(&animated, image.NewGray(image.Rect(0, 0, 8, 8)), nil))
	noise := image.NewRGBA(image.Rect(0, 0, 200, 200))
	for i := range noise.Pix {
		noise.Pix[i] = byte(rand.Int())
	}
	noise.Set(0, 0, color.Black)
	var large bytes.Buffer
	require.NoError(t, png.Encode(&large, noise))
	for what, file := range map[string][]byte{
		"a GIF": animated.Bytes(), "too wide": picture(t, 1025, 1), "too high": picture(t, 1, 1025),
		"too large": large.Bytes(), "cut": picture(t, 16, 16)[:20],
	} {
		require.True(t, problem.Is(n.update(t, access.OrganizationPatch{Logo: file}), problem.Validation), what)
	}
}

func findWorkspace(t *testing.T, n *tenant) {
	slug := n.slug()
	require.NoError(t, n.update(t, access.OrganizationPatch{Slug: &slug}))
	for _, name := range []string{slug, n.Organization.ID.String()} {
		found, err := n.App.Access.Workspace(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, n.Organization.ID, found.ID)
	}
	for _, name := range []string{"", "-", slug + "x", publicid.NewOrganization().String(), "org_", n.Owner.ID.String(), "a\x00b"} {
		_, err := n.App.Access.Workspace(t.Context(), name)
		require.True(t, problem.Is(err, problem.NotFound), "%q: %v", name, err)
	}
}

func updateReadOnly(t *testing.T, n *tenant) {
	n.App.Store.Client().Organization.Update().SetBillingState("read_only").ExecX(n.Context(t.Context()))
	require.NoError(t, n.update(t, access.OrganizationPatch{Name: new("Still here")}))
	a := n.Do(t, http.MethodPost, "/v1/boards", object{"name": "x"})
	require.Equal(t, http.StatusForbidden, a.Status)
}
