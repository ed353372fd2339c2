package bench

import (
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// The hash of the first thousand records and of all queries. A change of the
// generator makes earlier measurements incomparable: change this on purpose
// only, and measure again.
const goldenCorpus = "21adcbd380716a30"

func TestCorpusIsDeterministic(t *testing.T) {
	sum := func(c *Corpus) string {
		h := sha256.New()
		for in := range c.Records(0, 1000) {
			fmt.Fprintf(h, "%s\n%s\n", in.Judgment, in.Tags)
		}
		queries := c.Queries(20)
		for _, class := range Classes() {
			fmt.Fprintf(h, "%s\n%s\n", class, strings.Join(queries[class], "\n"))
		}
		return fmt.Sprintf("%x", h.Sum(nil))[:16]
	}
	first := sum(NewCorpus(1, 5000))
	if again := sum(NewCorpus(1, 5000)); first != again {
		t.Errorf("two runs gave %s and %s", first, again)
	}
	if first != goldenCorpus {
		t.Errorf("the corpus changed: %s, want %s", first, goldenCorpus)
	}
	if other := sum(NewCorpus(2, 5000)); first == other {
		t.Error("the seed does not matter")
	}
	if a, b := NewCorpus(1, 10).Record(7).Judgment, NewCorpus(1, 5000).Record(7).Judgment; a != b {
		t.Error("a record depends on the corpus's size")
	}
}

// within fails unless got lies in the range.
func within(t *testing.T, what string, got, low, high float64) {
	t.Helper()
	if math.IsNaN(got) || got < low || got > high {
		t.Errorf("%s is %.4f, want %.4f to %.4f", what, got, low, high)
	}
}

func TestCorpusDistribution(t *testing.T) {
	const n = 20000
	c := NewCorpus(1, n)
	bytes, langs, tags := 0, map[language]int{}, map[string]int{}
	perRecord := map[rune]int{}
	for i := range n {
		d := c.draft(i)
		text := d.text.String()
		bytes += len(text)
		langs[d.lang]++
		for _, tag := range d.tags() {
			tags[tag]++
		}
		if !utf8.ValidString(text) || text == "" {
			t.Fatalf("record %d: %q", i, text)
		}
		if d.lang == chinese {
			seen := map[rune]bool{}
			for _, r := range text {
				if unicode.Is(unicode.Han, r) && !seen[r] {
					seen[r] = true
					perRecord[r]++
				}
			}
		}
	}
	within(t, "bytes a record", float64(bytes)/n, 145, 175)
	within(t, "share of Chinese", float64(langs[chinese])/n, 0.38, 0.42)
	within(t, "share of English", float64(langs[english])/n, 0.38, 0.42)
	within(t, "share of mixed", float64(langs[mixed])/n, 0.18, 0.22)
	within(t, "a tag of 10 %", float64(tags["ten-3"])/n, 0.09, 0.11)
	within(t, "a tag of 1 %", float64(tags["hundred-07"])/n, 0.007, 0.013)
	within(t, "a tag of 0.1 %", float64(tags["thousand-123"])/n, 0.0003, 0.002)

	top := 0
	for _, k := range perRecord {
		top = max(top, k)
	}
	within(t, "commonest character", float64(top)/float64(langs[chinese]), 0.30, 0.45)
	if len(perRecord) < 2500 {
		t.Errorf("only %d different characters", len(perRecord))
	}

	s := c.statistics()
	within(t, "commonest English word", float64(slices.Max(s.en))/n, 0.30, 0.45)
	en := slices.Clone(s.en)
	slices.Sort(en)
	slices.Reverse(en)
	within(t, "tenth English word", float64(en[9])/n, 0.10, 0.25)
	within(t, "500th English word", float64(en[499])/n, 0.001, 0.008)
	for l := range 2 {
		if len(s.rare[l]) < 1000 || len(s.mid[l]) < 300 || len(s.frequent[l]) != frequentWords {
			t.Errorf("language %d: %d rare, %d mid, %d frequent words", l, len(s.rare[l]), len(s.mid[l]), len(s.frequent[l]))
		}
	}
}

func TestQueries(t *testing.T) {
	c := NewCorpus(3, 5000)
	queries := c.Queries(60)
	for _, class := range Classes() {
		qs := queries[class]
		if len(qs) != 60 {
			t.Fatalf("%s: %d queries", class, len(qs))
		}
		distinct := slices.Compact(slices.Sorted(slices.Values(qs)))
		if len(distinct) < 20 {
			t.Errorf("%s: only %d different queries", class, len(distinct))
		}
		for _, q := range qs {
			words, runes := len(strings.Fields(q)), utf8.RuneCountInString(q)
			ok := true
			switch class {
			case OneRare, OneMid, OneFrequent:
				ok = words == 1 && runes > 1
			case FiveMixed, FiveFrequent:
				ok = words == 5
			case EnglishQuestion:
				ok = words == 8
			case ChineseQuestion:
				ok = words == 1 && runes >= 8 && runes <= 12
			case TwoCharacters:
				ok = runes == 2
			case OneCharacter:
				ok = runes == 1
			}
			if !ok {
				t.Errorf("%s: %q", class, q)
			}
		}
	}
}

func TestRandom(t *testing.T) {
	r := newRandom(1, 1)
	sum, square := 0.0, 0.0
	const n = 50000
	for range n {
		x := r.normal()
		sum += x
		square += x * x
	}
	within(t, "mean", sum/n, -0.02, 0.02)
	within(t, "variance", square/n, 0.97, 1.03)
	if newRandom(1, 1).next() == newRandom(1, 2).next() || newRandom(1, 1).next() == newRandom(2, 1).next() {
		t.Error("streams are not independent")
	}
	z := newZipf(3, 1, 0)
	hits := [3]int{}
	for range n {
		hits[z.draw(r)]++
	}
	within(t, "first rank", float64(hits[0])/n, 0.535, 0.556)
	within(t, "third rank", float64(hits[2])/n, 0.172, 0.192)
}

func BenchmarkRecord(b *testing.B) {
	c := NewCorpus(1, 1)
	for i := range b.N {
		c.Record(i)
	}
}
