package embedded

import "math"

// scale is the fixed-point unit of scores: 1/65536.
const scale = 1 << 16

// unitsPerOccurrence is how a term frequency is stored: in quarters of an
// occurrence in field text, so that field weights are whole numbers.
const unitsPerOccurrence = 4

// Weights of one occurrence by field, in units. They were chosen on the
// evaluation sets, one setting for all (docs/adr).
const (
	unitsText = 4
	unitsTag  = 6
	unitsName = 12
)

// BM25's parameters (Robertson and Zaragoza, "The Probabilistic Relevance
// Framework: BM25 and Beyond", 2009, section 3), one setting for every kind. b is
// that of documents up to shortMean terms on average; see lengthShare.
const (
	k1 = 1.1
	b  = 0.45

	bLong     = 0.75
	shortMean = 100
	longMean  = 400
)

// lengthShare is BM25's b for documents of a mean length in terms: how much of their
// length counts against them. A note of thirty words is hardly ever twice as long as
// another one because it repeats itself; among pages of a thousand words the long ones
// are about more, and mention anything. Between the two b goes with the logarithm.
func lengthShare(mean float64) float64 {
	if mean <= shortMean {
		return b
	}
	share := math.Log2(mean/shortMean) / math.Log2(float64(longMean)/shortMean)
	return b + (bLong-b)*min(share, 1)
}

// Document lengths are kept in one byte: exact up to lenExact, then in steps of
// 5 %.
const lenExact = 63

var lenOf = lenTable()

func lenTable() (t [256]float32) {
	for i := range t {
		if i <= lenExact {
			t[i] = float32(i)
		} else {
			t[i] = float32(math.Round(lenExact * math.Pow(1.05, float64(i-lenExact))))
		}
	}
	return t
}

// lenCode is the code whose length is nearest to n.
func lenCode(n int) uint8 {
	if n <= lenExact {
		return uint8(max(n, 0))
	}
	code := lenExact + int(math.Round(math.Log(float64(n)/lenExact)/math.Log(1.05)))
	return uint8(min(code, 255))
}

// idf is BM25's inverse document frequency in the form that is never negative
// (as Lucene has it): ln(1 + (n - df + 0.5) / (df + 0.5)).
func idf(n, df int64) float64 {
	df = min(df, n)
	return math.Log(1 + (float64(n)-float64(df)+0.5)/(float64(df)+0.5))
}

// normTable gives BM25's length term for each length code, in units: k1 * (1 -
// b + b*len/avg) * unitsPerOccurrence, with the b of lengthShare.
type normTable [256]float32

func (t *normTable) fill(avg float64) {
	if avg <= 0 {
		avg = 1
	}
	b := lengthShare(avg)
	for i := range t {
		t[i] = float32(unitsPerOccurrence * k1 * (1 - b + b*float64(lenOf[i])/avg))
	}
}

// contribution is one term's share of a score in fixed point. weight is
// idf*(k1+1)*scale; tf is in units.
func contribution(weight float32, tf uint8, norm float32) uint32 {
	f := float32(tf)
	// The conversion keeps compilers from fusing the sum, which would make
	// scores differ between machines.
	return uint32(float32(weight*(f/(f+norm))) + 0.5)
}
