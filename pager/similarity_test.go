package pager

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// naiveSimilarity is the cosine of two of some texts, written down from its
// formula.
func naiveSimilarity(texts []termCounts, i, j int) float64 {
	weight := func(counts termCounts, term string) float64 {
		if counts[term] == 0 {
			return 0
		}
		df := 0.0
		for _, c := range texts {
			if c[term] > 0 {
				df++
			}
		}
		return (1 + math.Log(float64(counts[term]))) * (1 + math.Log((1+float64(len(texts)))/(1+df)))
	}
	var dot, a, b float64
	for term := range texts[i] {
		dot += weight(texts[i], term) * weight(texts[j], term)
		a += weight(texts[i], term) * weight(texts[i], term)
	}
	for term := range texts[j] {
		b += weight(texts[j], term) * weight(texts[j], term)
	}
	if dot == 0 {
		return 0
	}
	return dot / math.Sqrt(a*b)
}

func TestSimilarities(t *testing.T) {
	texts := []string{
		"The cache holds what the last call sent, and the prefix is read from it.",
		"The cache holds what the last call sent, and the prefix is read from it.",
		"A prefix is read from the cache.",
		"Bread is baked from flour and water.",
		"提供商的前缀缓存保存上一次调用的内容",
		"前缀缓存保存调用内容",
		"今天天气很好",
		"", "the of and", "!!!",
	}
	var counts []termCounts
	for _, s := range texts {
		counts = append(counts, countTerms("", "", s))
	}
	for i := range counts {
		others := slices.Delete(slices.Clone(counts), i, i+1)
		got := similarities(counts[i], others)
		for k, similarity := range got {
			j := k
			if j >= i {
				j++
			}
			if want := naiveSimilarity(counts, i, j); math.Abs(similarity-want) > 1e-6 {
				t.Errorf("%d and %d: %v, not %v", i, j, similarity, want)
			}
		}
	}
	got := similarities(counts[0], counts[1:])
	if got[0] != 1 || got[1] < 0.4 || got[1] >= 1 || got[2] != 0 || got[6] != 0 {
		t.Errorf("English: %v", got)
	}
	got = similarities(counts[4], counts[5:])
	if got[0] < 0.4 || got[0] >= 1 || got[1] > 0.1 {
		t.Errorf("Chinese: %v", got)
	}
	if got := similarities(counts[0], nil); len(got) != 0 {
		t.Error(got)
	}
	if got := similarities(counts[8], counts[:8]); slices.Max(got) != 0 {
		t.Errorf("without a term: %v", got)
	}
}

func TestRoundCosine(t *testing.T) {
	for _, c := range [][2]float64{{0.99999997, 1}, {1.0000001, 1}, {-0.1, 0}, {0.1234564, 0.123456}} {
		if got := roundCosine(c[0]); got != c[1] {
			t.Errorf("%v became %v", c[0], got)
		}
	}
}

func TestWeightiest(t *testing.T) {
	for _, c := range []struct{ title, summary, content, want string }{
		{"", "", "", ""},
		{"", "", "the of !!", ""},
		{"cache", "", "fox fox fox fox dog a", "fox cach dog"},
		{"缓存", "", "前缀前缀", "缓存 前缀 缀前"},
		{"", "", "字", "字"},
	} {
		if got := weightiest(c.title, c.summary, c.content); got != c.want {
			t.Errorf("%q: %q, not %q", c.content, got, c.want)
		}
	}
	if got := len(strings.Fields(weightiest("", "", story(50_000)))); got != maxQueryTerms {
		t.Errorf("%d terms", got)
	}
	// What lies behind the bound is not compared.
	long := strings.Repeat("a1b2 ", maxComparedBytes/5)
	if countTerms("", "", long+" zebra")["zebra"] != 0 || countTerms("zebra", "", long)["zebra"] != 1 {
		t.Error("the bound does not hold")
	}
}
