package loci

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/internal/testkit/fakeembed"
	"pgregory.net/rapid"
)

// tenantPlace is where a record of TestTenantsProperty lies, and its text.
type tenantPlace struct{ namespace, scope, text string }

// TestTenantsProperty writes, moves, deletes, embeds, reopens, rebuilds and takes
// through a file records of several namespaces and scopes with the same texts, and
// compares what searches by vectors find in each of them with a model.
func TestTenantsProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		root, err := os.MkdirTemp(t.TempDir(), "p")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(root)
		ctx := context.Background()
		check := func(err error) {
			rt.Helper()
			if err != nil {
				rt.Fatal(err)
			}
		}
		opened := 0
		open := func(folder string) *DB {
			db, err := Open(ctx, filepath.Join(root, folder), &Options{NoBackgroundEmbedding: true, WaitForIndex: true})
			check(err)
			check(second(db.Embeddings().RegisterSpace(ctx, EmbeddingSpace{ID: "v", Model: "m", Dimension: 8})))
			m := fakeembed.New(8)
			m.Fail(fakeembed.Refuses)
			check(db.Embeddings().RegisterEmbedder(ctx, "v", m, nil))
			return db
		}
		folder := "0"
		db := open(folder)
		defer func() { db.Close() }()
		records, embedded := map[ID]tenantPlace{}, map[ID]bool{}
		left := map[ID]bool{} // what the model is known to refuse
		namespaces, scopes := []string{"one", "two"}, []string{PublicScope, "private"}
		namespace, scope := rapid.SampledFrom(namespaces), rapid.SampledFrom(scopes)
		word := rapid.SampledFrom([]string{"tide", "lamp", "灯塔", fakeembed.RefusedWord})
		some := func() ID {
			if len(records) == 0 {
				return 0
			}
			return rapid.SampledFrom(slices.Sorted(maps.Keys(records))).Draw(rt, "id")
		}
		// What opens and builds anew takes long, so it is done less often.
		seldom := func() bool { return rapid.IntRange(0, 5).Draw(rt, "seldom") == 0 }
		rt.Repeat(map[string]func(*rapid.T){
			"new": func(*rapid.T) {
				p := tenantPlace{namespace.Draw(rt, "namespace"), scope.Draw(rt, "scope"), word.Draw(rt, "word")}
				r, err := db.Memories().Upsert(ctx, MemoryInput{RecordInput: RecordInput{Namespace: &p.namespace, Scope: &p.scope}, Judgment: p.text})
				check(err)
				records[r.Value.ID] = p
			},
			"write": func(*rapid.T) {
				id := some()
				if id == 0 {
					return
				}
				p := records[id]
				was := p.text
				p.scope, p.text = scope.Draw(rt, "scope"), word.Draw(rt, "word")
				check(second(db.Memories().Upsert(ctx, MemoryInput{RecordInput: RecordInput{ID: id, Namespace: &p.namespace, Scope: &p.scope}, Judgment: p.text})))
				delete(left, id)
				if records[id] = p; p.text != was {
					delete(embedded, id)
				}
			},
			"delete": func(*rapid.T) {
				if id := some(); id != 0 {
					check(second(db.Memories().Delete(ctx, id, ReadFilter{Namespace: new(records[id].namespace), Scopes: scopes})))
					delete(records, id)
					delete(embedded, id)
					delete(left, id)
				}
			},
			"sync": func(*rapid.T) {
				only := namespace.Draw(rt, "namespace")
				check(second(db.Embeddings().Sync(ctx, "v", EmbeddingSyncOptions{Namespace: &only})))
				for id, p := range records {
					if p.namespace == only && p.text == fakeembed.RefusedWord {
						left[id] = true
					} else if p.namespace == only {
						embedded[id] = true
					}
				}
			},
			"reopen": func(*rapid.T) {
				if !seldom() {
					return
				}
				if rapid.Bool().Draw(rt, "without index") {
					check(db.Close())
					check(os.RemoveAll(filepath.Join(root, folder, indexFolder)))
				} else {
					check(db.Close())
				}
				db = open(folder)
				clear(left)
			},
			"rebuild": func(*rapid.T) {
				if seldom() {
					check(second(db.RebuildIndexes(ctx)))
				}
			},
			"take elsewhere": func(*rapid.T) {
				if !seldom() {
					return
				}
				var file strings.Builder
				check(second(db.Export(ctx, &file, nil)))
				check(db.Close())
				opened++
				folder = fmt.Sprint(opened)
				db = open(folder)
				clear(left)
				report, err := db.Import(ctx, strings.NewReader(file.String()), &ImportOptions{Remap: rapid.Bool().Draw(rt, "remap")})
				check(err)
				if report.Kept {
					return
				}
				was, had := records, embedded
				records, embedded = map[ID]tenantPlace{}, map[ID]bool{}
				for id, p := range was {
					records[report.IDs[id]] = p
					if had[id] {
						embedded[report.IDs[id]] = true
					}
				}
			},
			"": func(*rapid.T) {
				for _, in := range namespaces {
					status, err := db.Embeddings().Status(ctx, in, "v")
					check(err)
					want := TierStatus{Tier: TierMemory, Enabled: true, Ready: status[0].Ready}
					for id, p := range records {
						if p.namespace == in {
							want.Records++
						}
						if p.namespace == in && embedded[id] {
							want.Vectors++
						}
						if p.namespace == in && left[id] {
							want.Left++
						}
					}
					if status[0] != want {
						rt.Fatalf("%s: %+v, want %+v", in, status[0], want)
					}
					for _, sees := range [][]string{{PublicScope}, {"private"}, scopes} {
						var want, got []ID
						for id, p := range records {
							if embedded[id] && p.namespace == in && slices.Contains(sees, p.scope) {
								want = append(want, id)
							}
						}
						res, err := db.Search(ctx, SearchRequest{Query: "tide lamp 灯塔", NoText: true, Limit: new(1000),
							Filter: ReadFilter{Namespace: &in, Scopes: sees}})
						check(err)
						for _, h := range res.Hits {
							got = append(got, h.Record.(*Memory).ID)
						}
						slices.Sort(want)
						slices.Sort(got)
						if !slices.Equal(got, want) {
							rt.Fatalf("%s, %v: found %v, want %v", in, sees, got, want)
						}
					}
				}
			},
		})
	})
}
