package eval

import (
	"context"
	"errors"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const observed = `{"id":"o1","scope":"c1","session":1,"date":"8 May 2023","text":"Ann says hello and bye","source":["c1/2","c1/1"]}
{"id":"o2","scope":"c1","session":1,"text":"Ann says bye","source":["c1/2"]}
{"id":"o3","scope":"c1","session":2,"text":"it goes on","source":["c1/3","c1/1"]}
`

// withObservations is the talk with facts made of it.
func withObservations(text string) map[string]string {
	files := maps.Clone(talk)
	files["observations.jsonl"] = text
	return files
}

// TestObservations loads facts in the documents' place: the documents behind them
// are ranked, each where it stands highest, and judged as ever.
func TestObservations(t *testing.T) {
	dir := write(t, "talk", withObservations(observed))
	s, err := Load(dir, "talk:observations")
	if err != nil {
		t.Fatal(err)
	}
	want := []Doc{
		{ID: "o1", Text: "Ann says hello and bye", Date: "8 May 2023", Scope: "c1", Thread: "c1/S1", Position: 1, Sources: []string{"c1/2", "c1/1"}},
		{ID: "o2", Text: "Ann says bye", Scope: "c1", Thread: "c1/S1", Position: 2, Sources: []string{"c1/2"}},
		{ID: "o3", Text: "it goes on", Scope: "c1", Thread: "c1/S2", Position: 1, Sources: []string{"c1/3", "c1/1"}},
	}
	if s.Unit != UnitSource || !reflect.DeepEqual(s.Docs, want) {
		t.Errorf("%s, docs %+v", s.Unit, s.Docs)
	}
	plain, err := Load(dir, "talk")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(s.Qrels, plain.Qrels) || !reflect.DeepEqual(s.Judged(), plain.Judged()) || plain.Docs[0].Sources != nil {
		t.Errorf("judged by %v, want %v", s.Qrels, plain.Qrels)
	}
	if s, err = Load(dir, "talk:audited-observations"); err != nil || s.Unit != UnitSource || len(s.Qrels) != 1 {
		t.Errorf("audited: %+v, %v", s, err)
	}

	found := []Scored{{"o2", 3}, {"o1", 2}, {"o3", 1}}
	for k, want := range map[int][]Scored{
		10: {{"c1/2", 3}, {"c1/1", 2}, {"c1/3", 1}},
		2:  {{"c1/2", 3}, {"c1/1", 2}},
	} {
		run, err := Search(t.Context(), s, k, func(context.Context, Query, int) ([]Scored, error) { return found, nil })
		if err != nil || !reflect.DeepEqual(run, Run{"q1": want}) {
			t.Errorf("the first %d: %v, %v", k, run, err)
		}
		if err := WriteRun(&strings.Builder{}, run); err != nil {
			t.Error(err)
		}
	}
}

func TestObservationsRefused(t *testing.T) {
	line := func(source string) string { return `{"id":"o","scope":"c1","text":"x","source":` + source + `}` }
	for _, c := range []struct{ name, text, want string }{
		{"no source", `{"id":"o","scope":"c1","text":"x"}`, `observations.jsonl:1: document "o": source is "", want an array`},
		{"of nothing", line("[]"), "want an array of document ids"},
		{"no array", line(`"c1/1"`), "want an array of document ids"},
		{"unknown", line(`["c1/9"]`), `unknown source "c1/9"`},
		{"of another scope", line(`["c2/1"]`), `its source "c2/1" is of scope "c2"`},
		{"twice", line(`["c1/1","c1/1"]`), `source "c1/1" is there twice`},
		{"empty", "", "no documents"},
	} {
		_, err := Load(write(t, "talk", withObservations(c.text)), "talk:observations")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
	dir := write(t, "talk", withObservations(observed))
	for _, task := range []string{"talk:xobservations", "talk:-observations", "talk:observations-sessions"} {
		if _, err := Load(dir, task); err == nil {
			t.Errorf("%s was loaded", task)
		}
	}
	if _, err := Load(write(t, "talk", talk), "talk:observations"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no facts: %v", err)
	}
}

// TestExpand holds the ranking of sources against one made the slow way.
func TestExpand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfDistinct(rapid.StringMatching("[a-d]"), rapid.ID[string])
		sources := rapid.MapOf(rapid.StringMatching("o[1-6]"), names).Draw(t, "sources")
		hits := []Scored{}
		for i, id := range rapid.SliceOf(rapid.StringMatching("o[1-6]")).Draw(t, "hits") {
			hits = append(hits, Scored{id, -float64(i)})
		}
		k := rapid.IntRange(0, 6).Draw(t, "k")
		naive := []Scored{}
		for _, h := range hits {
			for _, id := range sources[h.ID] {
				if !slices.ContainsFunc(naive, func(s Scored) bool { return s.ID == id }) {
					naive = append(naive, Scored{id, h.Score})
				}
			}
		}
		naive = naive[:min(k, len(naive))]
		if got := expand(hits, sources, k); !slices.Equal(got, naive) {
			t.Fatalf("%v, want %v", got, naive)
		}
	})
}
