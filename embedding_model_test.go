package loci

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/testkit/fakeembed"
	"pgregory.net/rapid"
)

// vectorModel says which records have vectors in which spaces, by the rules and
// without looking.
type vectorModel struct {
	texts  map[int64]string // of memories and entities, by id
	kinds  map[int64]Kind
	spaces map[string]map[int64]bool // records with a vector
	off    map[Tier]bool
	allOff bool
}

func (m *vectorModel) write(id int64, kind Kind, text string) {
	if m.texts[id] != text {
		for _, has := range m.spaces {
			delete(has, id)
		}
	}
	m.texts[id], m.kinds[id] = text, kind
}

func (m *vectorModel) forget(id int64) {
	delete(m.texts, id)
	for _, has := range m.spaces {
		delete(has, id)
	}
}

// sync gives the number of vectors that a sync writes.
func (m *vectorModel) sync(space string) (n int64) {
	for id, kind := range m.kinds {
		if _, there := m.texts[id]; there && !m.allOff && !m.off[tierOf(kind.number())] && !m.spaces[space][id] {
			m.spaces[space][id] = true
			n++
		}
	}
	return n
}

// TestVectorProperty writes, deletes, switches, syncs, deletes spaces, reopens,
// rebuilds and imports at random: truth and index have the vectors that the model
// says.
func TestVectorProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "p")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		open := func() *DB {
			db, err := Open(t.Context(), filepath.Join(dir, "db"), &Options{NoBackgroundEmbedding: true, WaitForIndex: true})
			if err != nil {
				rt.Fatal(err)
			}
			return db
		}
		db := open()
		defer func() { db.Close() }()
		m := &vectorModel{texts: map[int64]string{}, kinds: map[int64]Kind{}, spaces: map[string]map[int64]bool{}, off: map[Tier]bool{}}
		word := rapid.SampledFrom([]string{"tide", "lamp", "灯塔", "harbor"})
		space := rapid.SampledFrom([]string{"a", "b"})
		ctx := context.Background()
		some := func() ID {
			ids := slices.Sorted(maps.Keys(m.texts))
			if len(ids) == 0 {
				return 0
			}
			return ID(rapid.SampledFrom(ids).Draw(rt, "id"))
		}
		check := func(err error) {
			if err != nil {
				rt.Fatal(err)
			}
		}
		bindTo := func(name string) {
			model := fakeembed.New(4)
			check(second(db.Embeddings().RegisterSpace(ctx, EmbeddingSpace{ID: name, Model: "m", Dimension: 4})))
			check(db.Embeddings().RegisterEmbedder(ctx, name, model, &EmbedderOptions{MaxBatch: new(3)}))
			if m.spaces[name] == nil {
				m.spaces[name] = map[int64]bool{}
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"new memory": func(*rapid.T) {
				text := word.Draw(rt, "word")
				r, err := db.Memories().Upsert(ctx, MemoryInput{Judgment: text})
				check(err)
				m.write(int64(r.Value.ID), KindMemory, text)
			},
			"write memory": func(*rapid.T) {
				id := some()
				if m.kinds[int64(id)] != KindMemory || m.texts[int64(id)] == "" {
					return
				}
				text := word.Draw(rt, "word")
				_, err := db.Memories().Upsert(ctx, MemoryInput{RecordInput: RecordInput{ID: id, Tags: []string{word.Draw(rt, "tag")}}, Judgment: text})
				check(err)
				m.write(int64(id), KindMemory, text)
			},
			"entity": func(*rapid.T) {
				name, summary := word.Draw(rt, "name"), word.Draw(rt, "summary")
				r, err := db.Graph().ApplyBatch(ctx, GraphBatch{Entities: []EntityInput{{Name: name, Match: MatchByName, Summary: summary}}})
				check(err)
				m.write(int64(r.Value.Entities[0].ID), KindEntity, name+"\n"+summary)
			},
			"delete": func(*rapid.T) {
				id := some()
				if m.kinds[int64(id)] == KindMemory && id != 0 {
					check(second(db.Memories().Delete(ctx, id, ReadFilter{})))
					m.forget(int64(id))
				}
			},
			"switch": func(*rapid.T) {
				tier, on := rapid.SampledFrom([]Tier{TierMemory, TierGraph}).Draw(rt, "tier"), rapid.Bool().Draw(rt, "on")
				check(second(db.Embeddings().SetVectorization(ctx, DefaultNamespace, tier, on)))
				m.off[tier] = !on
			},
			"master": func(*rapid.T) {
				on := rapid.Bool().Draw(rt, "on")
				check(second(db.Embeddings().SetNamespaceVectorization(ctx, DefaultNamespace, on)))
				m.allOff = !on
			},
			"sync": func(*rapid.T) {
				name := space.Draw(rt, "space")
				bindTo(name)
				r, err := db.Embeddings().Sync(ctx, name, EmbeddingSyncOptions{Batch: new(rapid.IntRange(1, 5).Draw(rt, "batch"))})
				check(err)
				if want := m.sync(name); r.Value.Embedded != want || !r.Value.Ready || r.Value.Interrupted != "" {
					rt.Fatalf("%+v, want %d", r.Value, want)
				}
				for _, tier := range []Tier{TierMemory, TierGraph} {
					on := !m.allOff && !m.off[tier]
					if on && len(m.texts) == 0 {
						continue // a namespace without records is not looked into: what was said of it stands
					}
					if ready, err := db.Embeddings().VectorReady(ctx, DefaultNamespace, name, tier); err != nil || ready != on {
						rt.Fatalf("%s of %s: ready %v, want %v, %v", tier, name, ready, on, err)
					}
				}
			},
			"delete space": func(*rapid.T) {
				name := space.Draw(rt, "space")
				check(second(db.Embeddings().DeleteSpace(ctx, name)))
				delete(m.spaces, name)
			},
			"reopen": func(*rapid.T) {
				check(db.Close())
				db = open()
			},
			"rebuild": func(*rapid.T) {
				if rapid.IntRange(0, 3).Draw(rt, "rarely") == 0 {
					check(second(db.RebuildIndexes(ctx)))
				}
			},
			"": func(*rapid.T) {
				for _, name := range []string{"a", "b"} {
					want := slices.Sorted(maps.Keys(m.spaces[name]))
					if got := vectorsIn(t, db, name); !slices.Equal(got, want) {
						rt.Fatalf("%s: %v, want %v", name, got, want)
					}
				}
				if t.Failed() {
					rt.FailNow()
				}
			},
		})
		h, err := db.DeepHealth(ctx)
		check(err)
		if h.Integrity != "ok" {
			rt.Fatalf("%+v", h)
		}
		var rows int64
		err = db.eng.read(ctx, func(tx *store.ReadTx) error {
			for name, has := range m.spaces {
				sp, err := tx.Space(name)
				if err != nil || sp == nil {
					return fmt.Errorf("space %s: %w", name, err)
				}
				rows += int64(len(has))
			}
			return nil
		})
		check(err)
		if h.Vectors != rows {
			rt.Fatalf("the index has %d vectors, the truth %d", h.Vectors, rows)
		}
	})
}

// second is the error of two results.
func second[T any](_ T, err error) error { return err }
