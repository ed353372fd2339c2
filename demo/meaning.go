package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loci-memory/loci"
)

// Model is an embedder for the demonstration.
type Model struct {
	Name      string
	Dimension int
	Embedder  loci.Embedder
}

// rights is the namespace whose records get vectors: the articles of the
// declaration, few enough to embed them while somebody waits.
const rights = "rights"

// meanings are questions that share no word with what answers them.
var meanings = []struct {
	query, in string // in: the language of what is searched
	article   int
}{
	{"Can the police lock me up without a reason?", "zh", 9},
	{"干活累了，可以歇一歇吗？", "en", 24},
	{"Who pays for my child's lessons?", "zh", 26},
	{"政府能偷看我的信吗？", "en", 12},
}

// meaning asks in one language for what is written in the other.
func (t *tour) meaning() error {
	t.title("Found by meaning")
	if t.Model == nil {
		t.para("There is no embedder, so this part is left out: everything else works by words alone.")
		return nil
	}
	var batch []loci.MemoryInput
	for r, err := range Records() {
		if err != nil {
			return err
		}
		var m struct{ Article int }
		if json.Unmarshal(r.Metadata, &m) != nil || m.Article == 0 {
			continue // not of the declaration, or its preamble
		}
		r.Namespace = rights
		in, err := r.input(storyBegin.UnixMicro())
		if err != nil {
			return err
		}
		batch = append(batch, in)
	}
	if _, err := t.db.Memories().UpsertMany(t.ctx, batch); err != nil {
		return err
	}
	embeddings := t.db.Embeddings()
	if _, err := embeddings.RegisterSpace(t.ctx, loci.EmbeddingSpace{ID: t.Model.Name, Model: t.Model.Name, Dimension: t.Model.Dimension}); err != nil {
		return err
	}
	if err := embeddings.RegisterEmbedder(t.ctx, t.Model.Name, t.Model.Embedder, nil); err != nil {
		return err
	}
	// The searches that are timed later are those of the words alone.
	defer embeddings.UnregisterEmbedder(t.Model.Name)
	begin := time.Now()
	receipt, err := embeddings.Sync(t.ctx, t.Model.Name, loci.EmbeddingSyncOptions{Namespace: new(rights)})
	if err != nil {
		return err
	}
	if r := receipt.Value; r.Interrupted != "" || r.Embedded != int64(len(batch)) {
		return fmt.Errorf("demo: %d of %d articles got a vector: %s", r.Embedded, len(batch), r.Interrupted)
	}
	t.para(fmt.Sprintf("%d articles of the declaration, in both languages, got vectors by %s in %s. Questions in one language now find articles in the other.",
		len(batch), t.Model.Name, time.Since(begin).Round(100*time.Millisecond)))
	found := 0
	for _, m := range meanings {
		hits, err := t.meant(m.query, m.in)
		if err != nil {
			return err
		}
		want := fmt.Sprintf("udhr-%s-%02d", m.in, m.article)
		t.line("")
		t.line("  %s", t.paint(bold, m.query))
		for _, h := range hits {
			record, ok := h.Record.(*loci.Memory)
			if !ok {
				return errors.New("demo: a search for memories gave something else")
			}
			mark := " "
			if metaOf(record.Metadata).CorpusID == want {
				mark = t.paint(green, "✓")
			}
			t.line("   %s %6.3f  %s", mark, h.VectorScores[t.Model.Name], clip(record.Judgment, columns-15))
		}
		if slices.ContainsFunc(hits, func(h loci.SearchHit) bool {
			record, ok := h.Record.(*loci.Memory)
			return ok && metaOf(record.Metadata).CorpusID == want
		}) {
			found++
		}
	}
	t.line("")
	t.line("  %d of %d questions found their article among three hits. The number is the cosine.", found, len(meanings))
	return nil
}

func (t *tour) meant(query, lang string) ([]loci.SearchHit, error) {
	value, err := json.Marshal(lang)
	if err != nil {
		return nil, err
	}
	result, err := t.db.Search(t.ctx, loci.SearchRequest{Query: query, Limit: new(3), Filter: loci.ReadFilter{
		Namespace: new(rights), Where: []loci.Condition{{Key: "lang", Op: loci.OpEq, Value: value}},
	}})
	if err != nil {
		return nil, err
	}
	return result.Hits, nil
}
