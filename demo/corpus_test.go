package demo

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// The corpus is data under version control; these bounds are what its README
// and the demonstration promise.
func TestCorpusIsWellFormed(t *testing.T) {
	type place struct {
		scope, thread string
		position      int64
	}
	ids := map[string]bool{}
	places := map[place]string{}
	langs := map[string]int{}
	threads := map[string]int{}
	bytes := 0
	for r, err := range Records() {
		if err != nil {
			t.Fatal(err)
		}
		if r.ID == "" || ids[r.ID] {
			t.Errorf("id %q is empty or taken", r.ID)
		}
		ids[r.ID] = true
		if strings.TrimSpace(r.Judgment) == "" {
			t.Errorf("%s: blank judgment", r.ID)
		}
		if !utf8.ValidString(r.Judgment + r.Reasoning) {
			t.Errorf("%s: not UTF-8", r.ID)
		}
		if len(r.Tags) == 0 || slices.Contains(r.Tags, "") {
			t.Errorf("%s: tags %q", r.ID, r.Tags)
		}
		var meta struct{ Lang, Source string }
		if err := json.Unmarshal(r.Metadata, &meta); err != nil {
			t.Errorf("%s: metadata: %v", r.ID, err)
		}
		if meta.Source == "" {
			t.Errorf("%s: no source", r.ID)
		}
		langs[meta.Lang]++
		if han := strings.ContainsFunc(r.Judgment, func(c rune) bool { return unicode.Is(unicode.Han, c) }); han != (meta.Lang == "zh") {
			t.Errorf("%s: lang %q does not fit the text", r.ID, meta.Lang)
		}
		if r.Thread != "" {
			p := place{r.Scope, r.Thread, r.Position}
			if other, taken := places[p]; taken {
				t.Errorf("%s and %s stand at the same place", r.ID, other)
			}
			places[p] = r.ID
			threads[r.Thread]++
		} else if r.Position != 0 {
			t.Errorf("%s: position without a thread", r.ID)
		}
		bytes += len(r.Judgment) + len(r.Reasoning)
	}
	total := langs["en"] + langs["zh"]
	if total != len(ids) || total < 1000 || total > 4000 || 3*langs["zh"] < total {
		t.Errorf("%d records, by language %v", len(ids), langs)
	}
	if len(threads) < 20 || threads["hamlet 1.1"] < 50 {
		t.Errorf("%d threads; the first scene has %d speeches", len(threads), threads["hamlet 1.1"])
	}
	if bytes < 300_000 || bytes > 1_500_000 {
		t.Errorf("%d bytes of text", bytes)
	}
}

func TestQuestionsAreAnswerable(t *testing.T) {
	byID := map[string]Record{}
	for r, err := range Records() {
		if err != nil {
			t.Fatal(err)
		}
		byID[r.ID] = r
	}
	questions, err := Questions()
	if err != nil {
		t.Fatal(err)
	}
	chinese, filtered := 0, 0
	for _, q := range questions {
		if q.Query == "" || len(q.Want) == 0 || q.About == "" {
			t.Errorf("incomplete: %+v", q)
		}
		if strings.ContainsFunc(q.Query, func(c rune) bool { return unicode.Is(unicode.Han, c) }) {
			chinese++
		}
		if len(q.Tags) > 0 || q.Thread != "" {
			filtered++
		}
		for _, id := range q.Want {
			r, ok := byID[id]
			if !ok {
				t.Errorf("%q wants %s, which does not exist", q.Query, id)
				continue
			}
			if q.Thread != "" && r.Thread != q.Thread {
				t.Errorf("%q: %s is not in thread %s", q.Query, id, q.Thread)
			}
			for _, tag := range q.Tags {
				if !slices.Contains(r.Tags, tag) {
					t.Errorf("%q: %s has no tag %s", q.Query, id, tag)
				}
			}
		}
	}
	if len(questions) < 12 || chinese < 5 || chinese > len(questions)-5 || filtered < 4 {
		t.Errorf("%d questions, %d Chinese, %d filtered", len(questions), chinese, filtered)
	}
}

func TestEveryLicenceIsBesideTheData(t *testing.T) {
	readme, err := corpusFS.ReadFile("corpus/README.md")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := corpusFS.ReadDir("corpus/licenses")
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 3 {
		t.Errorf("%d licence files", len(entries))
	}
	for _, e := range entries {
		if !strings.Contains(string(readme), "licenses/"+e.Name()) {
			t.Errorf("%s is not named in the README", e.Name())
		}
	}
}

func TestWithID(t *testing.T) {
	for in, want := range map[string]string{
		`{}`:        `{"corpus_id":"x"}`,
		` { } `:     `{"corpus_id":"x"}`,
		`{"a":1.0}`: `{"corpus_id":"x","a":1.0}`,
	} {
		got, err := withID(json.RawMessage(in), "x")
		if err != nil || string(got) != want {
			t.Errorf("withID(%s) = %s, %v; want %s", in, got, err, want)
		}
	}
	if _, err := withID(json.RawMessage(`[]`), "x"); err == nil {
		t.Error("an array passed for metadata")
	}
}
