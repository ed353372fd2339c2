package bench

import (
	"fmt"
	"iter"
	"strings"

	"github.com/loci-memory/loci"
)

// The tags that filters name. Every record has one of ten tags that cover 10 %
// each, and a second one that covers 1 % or 0.1 %: half of the records share
// fifty tags, the other half five hundred.
const (
	tagTen      = "ten-%d"
	tagHundred  = "hundred-%02d"
	tagThousand = "thousand-%03d"
)

// language says what a record is written in.
type language uint8

const (
	chinese language = iota
	english
	mixed
)

// Corpus is a generated corpus. It holds the word lists but no record: every
// record is made from the seed and its number when it is asked for, so a
// corpus of any size takes the same memory.
type Corpus struct {
	seed    uint64
	records int
	en, zh  *vocabulary
}

// NewCorpus makes the corpus of a seed. The size matters to Queries alone:
// record i is the same in a corpus of any size.
func NewCorpus(seed uint64, records int) *Corpus {
	return &Corpus{seed: seed, records: records, en: newEnglish(seed), zh: newChinese(seed)}
}

// Len is the number of records.
func (c *Corpus) Len() int { return c.records }

// Record makes record i, i from 0; i may lie beyond Len, for records to add
// later.
func (c *Corpus) Record(i int) loci.MemoryInput {
	d := c.draft(i)
	return loci.MemoryInput{Judgment: d.text.String(), RecordInput: loci.RecordInput{Tags: d.tags()}}
}

// Records streams the records from number from up to but not including to.
func (c *Corpus) Records(from, to int) iter.Seq[loci.MemoryInput] {
	return func(yield func(loci.MemoryInput) bool) {
		for i := from; i < to; i++ {
			if !yield(c.Record(i)) {
				return
			}
		}
	}
}

// draft is a record with what the statistics need to know of it.
type draft struct {
	lang    language
	text    strings.Builder
	english []int // ranks of its words
	chinese []int
	ten     int
	second  int // 0..49: one of fifty tags; from 50 on: one of five hundred
}

func (d *draft) tags() []string {
	second := fmt.Sprintf(tagThousand, d.second-50)
	if d.second < 50 {
		second = fmt.Sprintf(tagHundred, d.second)
	}
	return []string{fmt.Sprintf(tagTen, d.ten), second}
}

func (c *Corpus) draft(i int) *draft {
	r := newRandom(c.seed, uint64(i))
	d := &draft{lang: mixed, ten: r.below(10)}
	if d.second = r.below(50); r.below(2) == 1 {
		d.second = 50 + r.below(500)
	}
	switch p := r.below(10); {
	case p < 4:
		d.lang = chinese
	case p < 8:
		d.lang = english
	}
	words := max(3, min(240, int(r.logNormal(24, 0.5))))
	switch d.lang {
	case chinese:
		for words > 0 {
			words -= c.chineseClause(d, r, min(words, r.between(4, 9)), words)
		}
	case english:
		for words > 0 {
			words -= c.englishSentence(d, r, min(words, r.between(5, 14)))
		}
	case mixed:
		for inChinese := r.below(2) == 0; words > 0; inChinese = !inChinese {
			n := min(words, r.between(3, 8))
			if inChinese {
				words -= c.chineseClause(d, r, n, words)
			} else {
				words -= c.englishSentence(d, r, n)
			}
		}
	}
	return d
}

// chineseClause writes n words and the mark behind them, a full stop at the
// end of the text and sometimes before. It gives n.
func (c *Corpus) chineseClause(d *draft, r *random, n, left int) int {
	for range n {
		rank := c.zh.ranks.draw(r)
		d.chinese = append(d.chinese, rank)
		d.text.WriteString(c.zh.words[rank])
	}
	if left == n || r.below(3) == 0 {
		d.text.WriteString("。")
	} else {
		d.text.WriteString("，")
	}
	return n
}

// englishSentence writes n words as a sentence and gives n.
func (c *Corpus) englishSentence(d *draft, r *random, n int) int {
	if d.text.Len() > 0 {
		d.text.WriteByte(' ')
	}
	for i := range n {
		rank := c.en.ranks.draw(r)
		d.english = append(d.english, rank)
		w := c.en.words[rank]
		if i == 0 {
			d.text.WriteString(strings.ToUpper(w[:1]) + w[1:])
		} else {
			d.text.WriteByte(' ')
			d.text.WriteString(w)
		}
		if i > 2 && i < n-2 && r.below(12) == 0 {
			d.text.WriteByte(',')
		}
	}
	d.text.WriteByte('.')
	return n
}
