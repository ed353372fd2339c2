package loci

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoteQuality looks for known notes by their first heading, which was taken
// out of them, through files, chunks and folding. The evaluation measures the
// same on whole documents.
func TestNoteQuality(t *testing.T) {
	if testing.Short() {
		t.Skip("it brings in 239 notes and asks for each")
	}
	data := notesFolder(t)
	lines := func(name string, each func(line string)) {
		f, err := os.Open(filepath.Join(data, name))
		if err != nil {
			t.Skip("there is no known-item set: ", plainCause(err))
		}
		defer f.Close()
		s := bufio.NewScanner(f)
		s.Buffer(nil, 16<<20)
		for s.Scan() {
			each(s.Text())
		}
		if err := s.Err(); err != nil {
			t.Fatal(err)
		}
	}
	type entry struct {
		ID   string `json:"id"`
		Text string `json:"text"`
	}
	read := func(name string) (all []entry) {
		lines(name, func(line string) {
			var e entry
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			all = append(all, e)
		})
		return all
	}
	b := newNoteBox(t)
	for _, d := range read("docs.jsonl") {
		b.file(d.ID, d.Text)
	}
	wanted := map[string]string{}
	lines("qrels.tsv", func(line string) {
		if f := strings.Fields(line); len(f) >= 2 {
			wanted[f[0]] = f[1]
		}
	})
	r := b.sync(SyncOptions{})
	byID := map[ID]string{}
	for path, n := range b.notes() {
		byID[n.ID] = path
	}
	var ndcg, found, asked float64
	for _, q := range read("queries.jsonl") {
		want, ok := wanted[q.ID]
		if !ok {
			continue
		}
		asked++
		for i, h := range b.find(q.Text) {
			if byID[noteOfHit(h)] == want {
				ndcg += 1 / math.Log2(float64(i+2))
				found++
				break
			}
		}
	}
	t.Logf("%d notes, %d chunks, %.0f questions: nDCG@10 %.4f, R@10 %.4f", r.Added, b.db.eng.health().IndexedDocuments, asked, ndcg/asked, found/asked)
	if ndcg/asked < 0.66 {
		t.Errorf("nDCG@10 is %.4f, want 0.66", ndcg/asked)
	}
}
