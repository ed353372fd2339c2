package eval

import (
	"os"
	"path/filepath"
	"testing"
)

// dataDir is where the evaluation sets lie: $LOCI_EVAL_DATA, or shared/data
// beside the repository. Tests that need them are skipped without them.
func dataDir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("LOCI_EVAL_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "data")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no evaluation data (set LOCI_EVAL_DATA): %v", err)
	}
	return dir
}

func TestLoadTheSets(t *testing.T) {
	dir := dataDir(t)
	for _, c := range []struct {
		task                            string
		docs, queries, judged, relevant int
	}{
		{"scifact", 5183, 300, 300, 339},
		{"scifact:train", 5183, 809, 809, 919},
		{"cmrc2018", 848, 3219, 3219, 3219},
		{"xquad:zh", 240, 1190, 1190, 1190},
		{"xquad:en", 240, 1190, 1190, 1190},
		{"xquad:zh-en", 240, 1190, 1190, 1190},
		{"xquad:en-zh", 240, 1190, 1190, 1190},
		{"2wiki", 6119, 1000, 859, 2188},
		{"notes", 239, 239, 239, 239},
		{"notes:cross", 239, 239, 148, 148},
		{"locomo:turns", 5882, 1986, 1982, 2820},
		{"locomo:audited", 5882, 1986, 1982, 2861},
		{"locomo:sessions", 5882, 1986, 1982, 0},
		{"locomo:observations", 2541, 1986, 1982, 2820},
		{"locomo:audited-observations", 2541, 1986, 1982, 2861},
	} {
		s, err := Load(dir, c.task)
		if err != nil {
			t.Error(err)
			continue
		}
		relevant := 0
		for _, q := range s.Judged() {
			relevant += len(s.Relevant(q.ID))
		}
		if c.relevant == 0 {
			relevant = 0
		}
		if len(s.Docs) != c.docs || len(s.Queries) != c.queries || len(s.Judged()) != c.judged || relevant != c.relevant {
			t.Errorf("%s: %d docs, %d queries, %d judged, %d relevant, want %+v", c.task, len(s.Docs), len(s.Queries), len(s.Judged()), relevant, c)
		}
	}
	s, err := Load(dir, "locomo")
	if err != nil {
		t.Fatal(err)
	}
	threads := map[string]bool{}
	for _, d := range s.Docs {
		threads[d.Thread] = true
	}
	if len(threads) != 272 {
		t.Errorf("locomo has %d sessions, want 272", len(threads))
	}
	for _, task := range Tasks() {
		if _, err := Load(dir, task); err != nil {
			t.Error(err)
		}
	}
}
