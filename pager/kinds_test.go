package pager

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/testkit/fakeembed"
)

// TestKindPage calls what takes kinds, filters or ids with those of pages: what is
// made for other kinds neither finds nor touches them, and a search finds them
// only when the kind and the scope are named.
func TestKindPage(t *testing.T) {
	db := openDB(t, t.TempDir(), nil)
	cs := scopeOf(t, db, Config{Scope: Scope{"project", "session"}, Budget: new(4000)})
	neighbour(t, cs)
	var ids []loci.ID
	var thread string
	err := registryOf(db).link.Read(t.Context(), func(tx *store.ReadTx) error {
		c, err := tx.ContextOf("project", `["project","session"]`)
		if err != nil {
			return err
		}
		return tx.PageHeads(c.ID, 0, 0, func(h *store.PageHead) bool {
			ids = append(ids, loci.ID(h.ID))
			return true
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	found := must[*loci.SearchResult](t)(db.Search(t.Context(), loci.SearchRequest{Query: secret, Kinds: []loci.Kind{loci.KindPage},
		Filter: loci.ReadFilter{Namespace: new("project"), Scopes: []string{`["project","session"]`}}}))
	for _, h := range found.Hits {
		if p, ok := h.Record.(*loci.ContextPage); ok && p.Thread != "" {
			thread = p.Thread
		}
	}
	if len(found.Hits) < 4 || thread == "" {
		t.Fatalf("%d hits, thread %q", len(found.Hits), thread)
	}
	text := exportOf(t, db)
	const ok = loci.Code("")
	page := ids[0]
	for _, f := range []struct {
		name   string
		filter loci.ReadFilter
		named  bool // the scope and the kind: a search that names the kind as well finds pages
	}{
		{"nothing named", loci.ReadFilter{Namespace: new("project")}, false},
		{"kind", loci.ReadFilter{Namespace: new("project"), Kinds: []loci.Kind{loci.KindPage}}, false},
		{"scope", loci.ReadFilter{Namespace: new("project"), Scopes: []string{`["project","session"]`}}, true},
		{"both", loci.ReadFilter{Namespace: new("project"), Scopes: []string{`["project","session"]`}, Kinds: []loci.Kind{loci.KindPage}}, true},
		{"another scope", loci.ReadFilter{Namespace: new("project"), Scopes: []string{`["project"]`}, Kinds: []loci.Kind{loci.KindPage}}, false},
		{"thread", loci.ReadFilter{Namespace: new("project"), Scopes: []string{`["project","session"]`}, Thread: &thread}, true},
		{"another namespace", loci.ReadFilter{Scopes: []string{`["project","session"]`}, Kinds: []loci.Kind{loci.KindPage}}, false},
	} {
		in := func(v any, err error) (anyResult, error) { return anyResult{v}, err }
		for _, c := range []struct {
			name string
			want loci.Code
			call func() (anyResult, error)
		}{
			{"memories.get", loci.ErrNotFound, func() (anyResult, error) { return in(db.Memories().Get(t.Context(), page, f.filter)) }},
			{"memories.list", ok, func() (anyResult, error) {
				return in(db.Memories().List(t.Context(), loci.PageRequest{Filter: f.filter}))
			}},
			{"memories.delete", ok, func() (anyResult, error) { return in(db.Memories().Delete(t.Context(), page, f.filter)) }},
			{"memories.delete_by_filter", ok, func() (anyResult, error) {
				return in(db.Memories().DeleteByFilter(t.Context(), loci.DeleteRequest{Filter: f.filter}))
			}},
			{"memories.upsert", loci.ErrNotFound, func() (anyResult, error) {
				return in(db.Memories().Upsert(t.Context(), loci.MemoryInput{RecordInput: loci.RecordInput{ID: page}, Judgment: "j"}))
			}},
			{"memories.feedback", loci.ErrNotFound, func() (anyResult, error) {
				return in(db.Memories().Feedback(t.Context(), loci.FeedbackRequest{Filter: f.filter, RecalledIDs: ids}))
			}},
			{"memories.decay", ok, func() (anyResult, error) {
				return in(db.Memories().Decay(t.Context(), loci.DecayRequest{Filter: f.filter}))
			}},
			{"graph.get", loci.ErrValidation, func() (anyResult, error) { return in(db.Graph().Get(t.Context(), loci.KindPage, page, f.filter)) }},
			{"graph.get entity", loci.ErrNotFound, func() (anyResult, error) { return in(db.Graph().Get(t.Context(), loci.KindEntity, page, f.filter)) }},
			{"graph.list", loci.ErrValidation, func() (anyResult, error) {
				return in(db.Graph().List(t.Context(), loci.KindPage, loci.PageRequest{Filter: f.filter}))
			}},
			{"graph.delete", loci.ErrValidation, func() (anyResult, error) { return in(db.Graph().Delete(t.Context(), loci.KindPage, page, f.filter)) }},
			{"graph.delete entity", ok, func() (anyResult, error) { return in(db.Graph().Delete(t.Context(), loci.KindEntity, page, f.filter)) }},
			{"graph.delete_by_filter", ok, func() (anyResult, error) {
				return in(db.Graph().DeleteByFilter(t.Context(), loci.DeleteRequest{Filter: f.filter}))
			}},
			{"graph.apply_batch", loci.ErrNotFound, func() (anyResult, error) {
				return in(db.Graph().ApplyBatch(t.Context(), loci.GraphBatch{Relations: []loci.RelationInput{{
					RecordInput: loci.RecordInput{Namespace: new("project")}, Subject: loci.EntityRef{ID: page}, Predicate: "p", Object: loci.EntityRef{ID: page}}}}))
			}},
			{"graph.neighbors", loci.ErrNotFound, func() (anyResult, error) { return in(db.Graph().Neighbors(t.Context(), page, f.filter, nil)) }},
			{"graph.resolve", ok, func() (anyResult, error) { return in(db.Graph().Resolve(t.Context(), secret, f.filter, nil)) }},
			{"graph.ego", loci.ErrNotFound, func() (anyResult, error) {
				return in(db.Graph().Ego(t.Context(), page, f.filter, loci.EgoOptions{}))
			}},
			{"notes.get", loci.ErrNotFound, func() (anyResult, error) { return in(db.Notes().Get(t.Context(), page, f.filter)) }},
			{"notes.get_chunk", loci.ErrNotFound, func() (anyResult, error) { return in(db.Notes().GetChunk(t.Context(), page, f.filter)) }},
			{"notes.list", ok, func() (anyResult, error) { return in(db.Notes().List(t.Context(), loci.PageRequest{Filter: f.filter})) }},
			{"notes.chunks", loci.ErrNotFound, func() (anyResult, error) {
				return in(db.Notes().Chunks(t.Context(), loci.ChunksRequest{NoteID: page, Filter: f.filter}))
			}},
			{"notes.delete", ok, func() (anyResult, error) { return in(db.Notes().Delete(t.Context(), page, f.filter)) }},
			{"notes.delete_by_filter", ok, func() (anyResult, error) {
				return in(db.Notes().DeleteByFilter(t.Context(), loci.DeleteRequest{Filter: f.filter}))
			}},
			{"search", ok, func() (anyResult, error) {
				return in(db.Search(t.Context(), loci.SearchRequest{Query: secret, Filter: f.filter, WithTotal: true}))
			}},
			{"search_preset", ok, func() (anyResult, error) {
				return in(db.SearchPreset(t.Context(), loci.PresetRequest{Query: secret, Filter: f.filter}))
			}},
			{"search_with_context", ok, func() (anyResult, error) {
				return in(db.SearchWithContext(t.Context(), loci.SearchRequest{Query: secret, Filter: f.filter}, nil))
			}},
		} {
			got, err := c.call()
			if loci.CodeOf(err) != c.want {
				t.Errorf("%s, %s: %v, want %q", f.name, c.name, err, c.want)
			}
			if err != nil {
				got.v = err.Error()
			}
			raw := must[[]byte](t)(json.Marshal(got.v))
			if strings.Contains(string(raw), secret) {
				t.Errorf("%s, %s tells of pages: %s", f.name, c.name, raw)
			}
		}
		found := must[*loci.SearchResult](t)(db.Search(t.Context(), loci.SearchRequest{Query: secret, Kinds: []loci.Kind{loci.KindPage, loci.KindMemory}, Filter: f.filter}))
		if (len(found.Hits) > 0) != f.named {
			t.Errorf("%s: %d pages are found", f.name, len(found.Hits))
		}
	}
	// Nothing of it changed anything.
	if again := exportOf(t, db); again[strings.Index(again, "\n"):] != text[strings.Index(text, "\n"):] {
		t.Error("the store is another one")
	}
	if h := must[*loci.HealthReport](t)(db.DeepHealth(t.Context())); h.Integrity != "ok" || h.Counts["page"] != int64(len(ids)) {
		t.Errorf("%+v", h)
	}
}

// anyResult is whatever an operation gives.
type anyResult struct{ v any }

// TestPagesGetVectors has pages get vectors by a sync and in the background, and a
// search find them by these alone.
func TestPagesGetVectors(t *testing.T) {
	for _, background := range []bool{false, true} {
		db := must[*loci.DB](t)(loci.Open(t.Context(), t.TempDir(), &loci.Options{WaitForIndex: true, NoBackgroundEmbedding: !background}))
		t.Cleanup(func() { db.Close() })
		s := db.Embeddings()
		model := fakeembed.New(32).Alike("beacon", "lighthouse")
		must[*loci.Receipt[loci.EmbeddingSpace]](t)(s.RegisterSpace(t.Context(), loci.EmbeddingSpace{ID: "v", Model: "fake", Dimension: 32}))
		if err := s.RegisterEmbedder(t.Context(), "v", model, nil); err != nil {
			t.Fatal(err)
		}
		cs := scopeOf(t, db, Config{Scope: Scope{"project", "session"}})
		for i := range 5 {
			put(t, cs, WriteRequest{PageID: fmt.Sprint("other", i), Content: fmt.Sprintf("cargo manifest number%d", i)})
		}
		put(t, cs, WriteRequest{PageID: "light", Title: "lighthouse", Content: "lighthouse"})
		status := func() loci.TierStatus {
			for _, st := range must[[]loci.TierStatus](t)(s.Status(t.Context(), "project", "v")) {
				if st.Tier == loci.TierPages {
					return st
				}
			}
			t.Fatal("there is no tier of pages")
			return loci.TierStatus{}
		}
		if background {
			for end := time.Now().Add(20 * time.Second); !status().Ready; time.Sleep(2 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("waited in vain: %+v", status())
				}
			}
		} else {
			if st := status(); st.Records != 6 || st.Vectors != 0 || st.Ready || !st.Enabled {
				t.Errorf("%+v", st)
			}
			got := must[*loci.Receipt[loci.EmbeddingReport]](t)(s.Sync(t.Context(), "v", loci.EmbeddingSyncOptions{})).Value
			if got.Embedded != 6 || !got.Ready {
				t.Errorf("%+v", got)
			}
		}
		if st := status(); st.Records != 6 || st.Vectors != 6 || !st.Ready {
			t.Errorf("background %v: %+v", background, st)
		}
		found := must[*loci.SearchResult](t)(db.Search(t.Context(), loci.SearchRequest{Query: "beacon", NoText: true, Kinds: []loci.Kind{loci.KindPage}, Limit: new(1),
			Filter: loci.ReadFilter{Namespace: new("project"), Scopes: []string{`["project","session"]`}}}))
		if !found.Diagnostics.VectorUsed || len(found.Hits) != 1 || found.Hits[0].Record.(*loci.ContextPage).PageID != "light" {
			t.Errorf("background %v: %+v", background, found)
		}
		// A touch leaves the vector, a new text takes it away.
		read(t, cs, "light")
		must[*PageInResult](t)(cs.PageIn(t.Context(), PageInRequest{PageID: "light"}))
		if !background {
			if st := status(); st.Vectors != 6 {
				t.Errorf("%+v", st)
			}
			put(t, cs, WriteRequest{PageID: "light", Content: "gone dark", ExpectedVersion: new(int64(1))})
			if st := status(); st.Vectors != 5 || st.Ready {
				t.Errorf("%+v", st)
			}
		}
		if h := must[*loci.HealthReport](t)(db.DeepHealth(t.Context())); h.Integrity != "ok" {
			t.Errorf("%+v", h)
		}
		// Vectors of pages go through a file as well.
		if text := exportOf(t, db); !background && strings.Count(text, `{"vector":"`) != 5 {
			t.Error(text)
		} else {
			made := openDB(t, t.TempDir(), nil)
			report := must[*loci.ImportReport](t)(made.Import(t.Context(), strings.NewReader(text), nil))
			if report.VectorsSkipped != 0 || report.Vectors < 5 {
				t.Errorf("%+v", report)
			}
		}
	}
}
