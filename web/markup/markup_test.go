package markup

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"earshot/web/messages"
)

func english(t testing.TB) *messages.Words {
	t.Helper()
	w, err := messages.Load(messages.Languages[0])
	require.NoError(t, err)
	return w
}

func shown(t testing.TB, document, plain string) string {
	t.Helper()
	b := NewConverted().ForPage(english(t))
	return string(b.HTML(json.RawMessage(document), plain))
}

// doc is a document with the given nodes.
func doc(nodes string) string { return `{"type":"doc","content":[` + nodes + `]}` }

func TestADocumentBecomesHTML(t *testing.T) {
	t.Parallel()
	const text = `{"type":"text","text":"a<b"}`
	marked := func(marks string) string { return `{"type":"text","text":"x","marks":[` + marks + `]}` }
	for document, wanted := range map[string]string{
		`{"type":"paragraph","content":[` + text + `]}`:                                                 "<p>a&lt;b</p>",
		`{"type":"bulletList","content":[{"type":"listItem","content":[` + text + `]}]}`:                "<ul><li>a&lt;b</li></ul>",
		`{"type":"ordered_list","content":[{"type":"list_item","content":[` + text + `]}]}`:             "<ol><li>a&lt;b</li></ol>",
		`{"type":"listItem","content":[` + text + `]}`:                                                  "a&lt;b",
		`{"type":"heading","attrs":{"level":1},"content":[` + text + `]}`:                               "<h3>a&lt;b</h3>",
		`{"type":"heading","attrs":{"level":"x"},"content":[` + text + `]}`:                             "<h5>a&lt;b</h5>",
		`{"type":"codeBlock","content":[` + text + `]}`:                                                 "<pre><code>a&lt;b</code></pre>",
		`{"type":"blockquote","content":[` + text + `]},{"type":"horizontalRule"},{"type":"hardBreak"}`: "<blockquote>a&lt;b</blockquote><hr><br>",
		`{"type":"mention","content":[` + text + `]}`:                                                   "a&lt;b",
		`{"type":"image","attrs":{"src":"https://x.example/p.gif"}},` + text:                            "a&lt;b",
		marked(`{"type":"bold"},{"type":"italic"},{"type":"unknown"}`):                                  "<strong><em>x</em></strong>",
		marked(`{"type":"link","attrs":{"href":"https://example.com/?a=1&b=\"2\""}}`):                   `<a href="https://example.com/?a=1&amp;b=&#34;2&#34;" rel="nofollow noreferrer">x</a>`,
		marked(`{"type":"link","attrs":{"href":"javascript:alert(1)"}}`):                                "x",
		marked(`{"type":"link","attrs":{"href":"//elsewhere.example"}}`):                                "x",
		marked(`{"type":"link","attrs":{"href":7}}`):                                                    "x",
	} {
		require.Equal(t, wanted, shown(t, doc(document), "plain"), document)
	}
}

func TestATextWithAnInvalidDocumentIsShownAsMarkdown(t *testing.T) {
	t.Parallel()
	for _, document := range []string{
		``, `null`, `{}`, `[]`, `7`, `"doc"`, `{"type":"doc"}`, `{"type":"doc","content":7}`, doc(`{"type":"paragraph"}`),
		doc(`{"type":"text","text":7}`), doc(`{"type":"text","text":"  "}`), `{"type":"other","content":[{"type":"text","text":"x"}]}`,
	} {
		require.Equal(t, "<p>plain</p>\n", shown(t, document, "plain"), document)
	}
}

func TestMarkdownBecomesHTML(t *testing.T) {
	t.Parallel()
	for text, wanted := range map[string]string{
		"":                                    "",
		"# One\n## Two\n### Three\n#### Four": "<h3>One</h3>\n<h4>Two</h4>\n<h5>Three</h5>\n<h5>Four</h5>\n",
		"The <button> is gone":                "<p>The &lt;button&gt; is gone</p>\n",
		"<script>alert(1)</script>":           "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>\n",
		"see https://example.com.":            `<p>see <a href="https://example.com" rel="nofollow noreferrer">https://example.com</a>.</p>` + "\n",
		"![a cat](https://x.example/c.png)":   `<p><a href="https://x.example/c.png" rel="nofollow noreferrer">a cat</a></p>` + "\n",
		"![](https://x.example/c.png)":        `<p><a href="https://x.example/c.png" rel="nofollow noreferrer">https://x.example/c.png</a></p>` + "\n",
		"[x](javascript:alert(1))":            "<p>x</p>\n",
		"[x](/v1/boards)":                     "<p>x</p>\n",
		"~~no~~ `<i>`":                        "<p><del>no</del> <code>&lt;i&gt;</code></p>\n",
		"    code":                            "<pre><code>code\n</code></pre>\n",
	} {
		require.Equal(t, wanted, shown(t, "", text), text)
	}
}

func TestTextsThatComeToTooMuchOnOnePageShowTheirBeginning(t *testing.T) {
	t.Parallel()
	b := &Bodies{english(t), NewConverted().kept, 3000, markdownWork}
	long := strings.Repeat("ä<", 1200)
	require.Contains(t, string(b.HTML(nil, "short")), "<p>short</p>")
	cut := string(b.HTML(nil, long))
	require.Contains(t, cut, "too long")
	require.Contains(t, cut, strings.Repeat("ä&lt;", 500)+" …")
	require.NotContains(t, cut, strings.Repeat("ä&lt;", 501))
	require.Contains(t, string(b.HTML(nil, "short again")), "<p>short again</p>", "there is room for others")
}

func TestATextThatNestsTooDeepIsShownAsPlainText(t *testing.T) {
	t.Parallel()
	deep := doc(strings.Repeat(`{"type":"blockquote","content":[`, 900) + `{"type":"text","text":"x"}` + strings.Repeat(`]}`, 900))
	require.Equal(t, "<p>plain</p>\n", shown(t, deep, "plain"))
	quoted := strings.Repeat(">", 200) + " x"
	require.Equal(t, "<p>"+html.EscapeString(quoted)+"</p>", shown(t, "", quoted))
}

// A slow text is shown as plain text and does not affect the texts beside it.
func TestTextsThatWouldTakeLongAreShownAsTheyWereTyped(t *testing.T) {
	t.Parallel()
	b := NewConverted().ForPage(english(t))
	for _, mark := range []string{">", "*_a", "[a](", "[a](b", "1. "} {
		hostile := strings.Repeat(mark, 50_000/len(mark))
		require.Equal(t, "<p>"+sanitizer.Sanitize(html.EscapeString(strings.TrimSpace(hostile)))+"</p>", string(b.HTML(nil, hostile)))
	}
	require.Equal(t, "<p><em>a</em></p>\n", string(b.HTML(nil, "*a*")))
	require.Equal(t, "<p>a<br>b</p><p>&lt;c&gt;</p>", typed("a\r\nb\n\n\n\n<c>\n"))
	article := strings.Repeat("Some **bold** words, a [link](https://example.com) and `code`.\n\n", 300)
	require.Contains(t, string(NewConverted().ForPage(b.Words).HTML(nil, article)), "<strong>bold</strong>", "what people write is far from it")
}

func TestAnExcerptIsOneLineWithoutMarks(t *testing.T) {
	t.Parallel()
	for text, wanted := range map[string]string{
		"I send a **weekly report**\nto people.\n\n- one\n- [two](https://example.com)\n\n> said": "I send a weekly report to people. one two said",
		"# Title\n\n```\nGET /v1\n```\nSee https://example.com":                                   "Title GET /v1 See https://example.com",
		"The <button> `<b>`\n\n    code":                                                          "The <button> <b> code", "": "", " \n": "",
	} {
		require.Equal(t, wanted, Excerpt(text), text)
	}
	require.Equal(t, strings.Repeat("ä", excerptLength)+" …", Excerpt(strings.Repeat("ä", 50_000)))
}

// safe requires that HTML has only the allowed elements.
func safe(t *testing.T, made string) {
	t.Helper()
	var open []string
	for tokens := html.NewTokenizer(strings.NewReader(made)); ; {
		kind := tokens.Next()
		token := tokens.Token()
		switch kind {
		case html.ErrorToken:
			require.Empty(t, open, "what is opened is closed: %s", made)
			return
		case html.CommentToken, html.DoctypeToken:
			t.Fatalf("%s in %s", token, made)
		case html.StartTagToken, html.SelfClosingTagToken:
			require.True(t, slices.Contains(elements, token.Data), "<%s> in %s", token.Data, made)
			for _, a := range token.Attr {
				safeAttribute(t, token.Data, a)
			}
			if kind == html.StartTagToken && token.Data != "br" && token.Data != "hr" {
				open = append(open, token.Data)
			}
		case html.EndTagToken:
			require.NotEmpty(t, open, "</%s> ends what the page opened: %s", token.Data, made)
			require.Equal(t, open[len(open)-1], token.Data, made)
			open = open[:len(open)-1]
		}
	}
}

func safeAttribute(t *testing.T, element string, a html.Attribute) {
	t.Helper()
	require.Equal(t, "a", element)
	switch a.Key {
	case "rel":
		require.Equal(t, "nofollow noreferrer", a.Val)
	case "href":
		require.True(t, mayLinkTo(a.Val), a.Val)
		lower := strings.ToLower(a.Val)
		require.True(t, strings.HasPrefix(lower, "http:") || strings.HasPrefix(lower, "https:") || strings.HasPrefix(lower, "mailto:"), a.Val)
	default:
		t.Fatalf("%s=%q", a.Key, a.Val)
	}
}

func FuzzMarkdownNeverYieldsMarkupOutsideTheList(f *testing.F) {
	for _, seed := range []string{
		"", "# a\n\n> b\n\n- [c](https://d)", "<script>alert(1)</script>", "[a](javascript:x)", "![a](data:text/html,<b>)", "<a href=x onclick=y>",
		"<https://e.example/\"onload=x>", "```html\n</code></pre><img src=x>\n```", "&lt;img&gt; &#60;b&#62;", "[a]: <j&#97;vascript:x>\n[a]", "~~a~~ **b*c**",
		strings.Repeat("> ", 100) + "x", strings.Repeat("[", 300), "<!-- x -->", "a\x00b\xff", "www.example.com<b>", "\\<b>",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) { safe(t, shown(t, "", text)) })
}

func FuzzDocumentsNeverYieldMarkupOutsideTheList(f *testing.F) {
	for _, seed := range []string{
		doc(`{"type":"paragraph","content":[{"type":"text","text":"<img src=x onerror=alert(1)>"}]}`),
		doc(`{"type":"text","text":"x","marks":[{"type":"link","attrs":{"href":"JaVaScRiPt:alert(1)"}}]}`),
		doc(`{"type":"text","text":"x","marks":[{"type":"link","attrs":{"href":"https://a\" onmouseover=\"x"}}]}`),
		doc(`{"type":"script","content":[{"type":"text","text":"alert(1)"}]}`),
		doc(`{"type":"heading","attrs":{"level":"1><script>"},"content":[{"type":"text","text":"x"}]}`),
		doc(`{"type":"bulletList","content":[{"type":"listItem","content":[{"type":"bulletList"},{"type":"text","text":"</li>"}]}]}`),
		doc(`{"type":"text","text":"x","marks":[{"type":"code"},{"type":"link","attrs":{"href":"mailto:a@b"}},{"type":"link","attrs":{"href":"http://\u0000"}}]}`),
		`{"type":"doc","content":{}}`, `[`, `null`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, document string) { safe(t, shown(t, document, "plain")) })
}

func TestATextIsConvertedOnceForAllPages(t *testing.T) {
	t.Parallel()
	texts := NewConverted()
	first := texts.ForPage(english(t)).HTML(nil, "**bold**")
	require.Contains(t, string(first), "<strong>bold</strong>")
	texts.kept.Put(hashed(nil, "**bold**"), converted{html: "<p>kept</p>"}, time.Now().Add(time.Minute))
	require.Equal(t, "<p>kept</p>", string(texts.ForPage(english(t)).HTML(nil, "**bold**")))
	require.NotEqual(t, "<p>kept</p>", string(texts.ForPage(english(t)).HTML(nil, "**bold** ")), "an edited text is another one")
}

func TestAPageLooksTheSameWhetherItsTextsAreKeptOrNot(t *testing.T) {
	t.Parallel()
	texts := NewConverted()
	dear := strings.Repeat("> ", 5000)
	render := func() (all []string) {
		page := texts.ForPage(english(t))
		for range 4 {
			all = append(all, string(page.HTML(nil, dear)))
		}
		return all
	}
	require.Equal(t, render(), render())
}
