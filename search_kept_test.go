package loci

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// someWords are words of a small vocabulary, some of them much commoner than others.
func someWords(rng *rand.Rand, n int) string {
	words := make([]string, n)
	for i := range words {
		k := int(40 * rng.Float64() * rng.Float64())
		words[i] = []string{fmt.Sprint("word", k), string([]rune("山川河流草木鱼虫春夏秋冬东西南北")[k%15:][:1+k%2])}[rng.IntN(2)]
	}
	return strings.Join(words, " ")
}

// TestNarrowWindow holds that a search whose hits the text alone decides gives what
// one of a hundred candidates gives: with notes and without, whatever the limit.
func TestNarrowWindow(t *testing.T) {
	onlyInNotes := []string{"moraine", "esker", "drumlin", "kettle"}
	for _, notes := range []int{0, 6} {
		t.Run(fmt.Sprint(notes, " notes"), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, uint64(notes)))
			db := openTestDB(t, t.TempDir())
			var batch []MemoryInput
			for range 400 {
				batch = append(batch, MemoryInput{Judgment: someWords(rng, 3+rng.IntN(20)),
					RecordInput: RecordInput{Tags: []string{fmt.Sprint("tag-", rng.IntN(30))}}})
			}
			must[*Receipt[[]Memory]](t)(db.Memories().UpsertMany(t.Context(), batch))
			if notes > 0 {
				root := t.TempDir()
				for i := range notes {
					var text strings.Builder
					for part := range 12 {
						fmt.Fprintf(&text, "# %s\n\n%s %s\n\n", someWords(rng, 2), someWords(rng, 60), onlyInNotes[part%4])
					}
					dir := filepath.Join(root, fmt.Sprint("word", i))
					if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "note.md"), []byte(text.String()), 0o600)); err != nil {
						t.Fatal(err)
					}
				}
				must[*Receipt[string]](t)(db.Notes().SetRoot(t.Context(), DefaultNamespace, root))
				must[*Receipt[SyncReport]](t)(db.Notes().SyncDir(t.Context(), DefaultNamespace, SyncOptions{}))
			}
			ofNotes := 0
			for range 60 {
				req := SearchRequest{Query: someWords(rng, 1+rng.IntN(4)), Limit: new([]int{1, 3, 10, 40}[rng.IntN(4)])}
				if rng.IntN(3) == 0 {
					req.Filter.Tags = []string{fmt.Sprint("tag-", rng.IntN(30))}
				}
				switch rng.IntN(3) {
				case 0:
					req.Kinds = []Kind{KindMemory}
				case 1:
					req.Query = onlyInNotes[rng.IntN(4)]
				}
				got := must[*SearchResult](t)(db.Search(t.Context(), req))
				req.CandidateLimit = new(defaultCandidates)
				if *req.Limit > 20 {
					req.CandidateLimit = new(candidatesPerHit * *req.Limit)
				}
				want := must[*SearchResult](t)(db.Search(t.Context(), req))
				if diff := cmp.Diff(want.Hits, got.Hits); diff != "" {
					t.Fatalf("%+v\n%s", req, diff)
				}
				for _, h := range got.Hits {
					if h.NoteChunks != nil {
						ofNotes++
					}
				}
			}
			if (ofNotes > 0) != (notes > 0) {
				t.Fatalf("%d hits of notes", ofNotes)
			}
		})
	}
}

// TestSearchedRecords holds that what a caller does to a record that a search gave
// it changes no other search, and that changes and access show at once.
func TestSearchedRecords(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	in := MemoryInput{Judgment: "the lighthouse keeper", RecordInput: RecordInput{Tags: []string{"sea"}, Metadata: Metadata(`{"a":1}`),
		Thread: new("t"), Position: new(int64(4)), Evidence: []Evidence{{Source: "s", Offset: new(int64(1)), Limit: new(int64(2)), Metadata: Metadata(`{"b":2}`)}}}}
	m := addMemory(t, db, in)
	find := func(ctx context.Context, query string) []SearchHit {
		return must[*SearchResult](t)(db.Search(ctx, SearchRequest{Query: query})).Hits
	}
	for range 2 {
		got := find(t.Context(), "lighthouse")[0].Record.(*Memory)
		if diff := cmp.Diff(&m, got); diff != "" {
			t.Fatal(diff)
		}
		got.Tags[0], got.Metadata[1], *got.Position, *got.Evidence[0].Offset, got.Evidence[0].Metadata[1] = "x", 'x', 9, 9, 'x'
		got.Judgment, got.Evidence[0].Source = "x", "x"
	}
	elsewhere := WithAccess(t.Context(), &Access{Grants: []Grant{{Namespace: DefaultNamespace, Scopes: []string{"other"}}}})
	if _, err := db.Search(elsewhere, SearchRequest{Query: "lighthouse"}); !errors.Is(err, ErrForbidden) {
		t.Fatalf("a scope that is not granted: %v", err)
	}
	if hits := must[*SearchResult](t)(db.Search(t.Context(), SearchRequest{Query: "lighthouse", Filter: ReadFilter{Namespace: new("tenant")}})).Hits; len(hits) > 0 {
		t.Fatalf("another namespace finds %v", hits)
	}
	in.ID, in.Judgment = m.ID, "the harbour master"
	addMemory(t, db, in)
	if hits := find(t.Context(), "lighthouse"); len(hits) > 0 {
		t.Fatalf("the old text finds %v", hits)
	}
	if got := find(t.Context(), "harbour")[0].Record.(*Memory); got.Judgment != in.Judgment {
		t.Fatal(got.Judgment)
	}
	must[*Receipt[bool]](t)(db.Memories().Delete(t.Context(), m.ID, ReadFilter{}))
	if hits := find(t.Context(), "harbour"); len(hits) > 0 {
		t.Fatalf("what is deleted is found: %v", hits)
	}
}

// TestSearchIsOfItsSnapshot holds that searches beside writes see each record whole, as
// of the snapshot that they say, and never older than what was acknowledged before.
func TestSearchIsOfItsSnapshot(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	const records, rounds = 8, 40
	ids := make([]ID, records)
	write := func(i, n int) int64 {
		receipt, err := db.Memories().Upsert(context.Background(), MemoryInput{Judgment: fmt.Sprintf("counter record%d has %d", i, n),
			RecordInput: RecordInput{ID: ids[i], Tags: []string{fmt.Sprint("n", n)}}})
		if err != nil {
			t.Error(err)
			return 0
		}
		ids[i] = receipt.Value.ID
		return receipt.Revision
	}
	for i := range ids {
		write(i, 0)
	}
	var group sync.WaitGroup
	for i := range records {
		group.Go(func() {
			for n := 1; n <= rounds && !t.Failed(); n++ {
				revision := write(i, n)
				result, err := db.Search(context.Background(), SearchRequest{Query: "counter", Limit: new(records)})
				if err != nil {
					t.Error(err)
					return
				}
				if result.Revision < revision || len(result.Hits) != records {
					t.Errorf("revision %d after %d, %d hits", result.Revision, revision, len(result.Hits))
				}
				for _, h := range result.Hits {
					m := h.Record.(*Memory)
					if !strings.HasSuffix(m.Judgment, " has "+strings.TrimPrefix(m.Tags[0], "n")) || m.Revision > result.Revision {
						t.Errorf("%q with %v of revision %d in %d", m.Judgment, m.Tags, m.Revision, result.Revision)
					}
					if m.ID == ids[i] && !strings.HasSuffix(m.Judgment, fmt.Sprint(" has ", n)) {
						t.Errorf("%q after %d was acknowledged", m.Judgment, n)
					}
				}
			}
		})
	}
	group.Wait()
}
