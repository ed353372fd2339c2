package text

import (
	"bufio"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
)

func oracleStem(w string) string {
	env := snowballstem.NewEnv(w)
	english.Stem(env)
	return env.Current()
}

func TestStem(t *testing.T) {
	for _, c := range []struct{ word, want string }{
		{"a", "a"}, {"as", "as"}, {"caresses", "caress"}, {"ties", "tie"}, {"cries", "cri"}, {"gas", "gas"},
		{"gaps", "gap"}, {"agreed", "agre"}, {"feed", "feed"}, {"hopping", "hop"}, {"hoping", "hope"},
		{"luxuriated", "luxuri"}, {"happy", "happi"}, {"say", "say"}, {"generously", "generous"},
		{"communities", "communiti"}, {"national", "nation"}, {"rationalization", "ration"}, {"apologi", "apolog"},
		{"replacement", "replac"}, {"adoption", "adopt"}, {"skies", "sky"}, {"news", "news"}, {"herrings", "herring"},
		{"succeeded", "succeed"}, {"youth", "youth"}, {"yellowing", "yellow"}, {"enjoying", "enjoy"},
	} {
		if got := string(stem([]byte(c.word))); got != c.want {
			t.Errorf("stem(%q) = %q, want %q", c.word, got, c.want)
		}
	}
}

// Words put together at random from stems and suffixes reach every rule.
func TestStemAgainstSnowball(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	starts := strings.Fields("gener commun arsen hop hopp plan cl y sk inn succ yell a e ou b tr lum zl og olog us ies eed dy wax fix bow play")
	ends := strings.Fields("s es ies ied ed ing eed eedly ingly edly y ly ization ational ator alism fulness ousness iveness biliti lessli ogi logi li ate ic ical ness ful ative ement ment ent ion tion sion ous ive ize al ance e l ll bl at iz sses us ss")
	for range 200_000 {
		w := starts[rng.IntN(len(starts))]
		for range rng.IntN(4) {
			if rng.IntN(3) == 0 {
				w += string(rune('a' + rng.IntN(26)))
			}
			w += ends[rng.IntN(len(ends))]
		}
		if got, want := string(stem([]byte(w))), oracleStem(w); got != want {
			t.Fatalf("stem(%q) = %q, want %q", w, got, want)
		}
	}
}

func TestStemRealWords(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{"scifact/docs.jsonl", "locomo/docs.jsonl"} {
		f, err := os.Open(filepath.Join(dataDir(t), name))
		if err != nil {
			t.Skipf("no evaluation data: %v", err)
		}
		defer f.Close()
		sc := bufio.NewScanner(f)
		sc.Buffer(nil, 1<<24)
		for sc.Scan() {
			for _, w := range strings.FieldsFunc(strings.ToLower(sc.Text()), func(r rune) bool { return r < 'a' || r > 'z' }) {
				if seen[w] {
					continue
				}
				seen[w] = true
				if got, want := string(stem([]byte(w))), oracleStem(w); got != want {
					t.Fatalf("stem(%q) = %q, want %q", w, got, want)
				}
			}
		}
		if err := sc.Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// dataDir is where the evaluation sets lie: $LOCI_EVAL_DATA or beside the
// repository.
func dataDir(t testing.TB) string {
	if d := os.Getenv("LOCI_EVAL_DATA"); d != "" {
		return d
	}
	return filepath.Join("..", "..", "..", "shared", "data")
}

func FuzzStem(f *testing.F) {
	for _, w := range []string{"hoping", "generalization", "yyyy", "s"} {
		f.Add(w)
	}
	f.Fuzz(func(t *testing.T, s string) {
		w := strings.Map(func(r rune) rune {
			if 'a' <= r && r <= 'z' {
				return r
			}
			return -1
		}, strings.ToLower(s))
		if got, want := string(stem([]byte(w))), oracleStem(w); got != want {
			t.Fatalf("stem(%q) = %q, want %q", w, got, want)
		}
	})
}
