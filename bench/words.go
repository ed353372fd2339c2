package bench

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/simplifiedchinese"
)

// Sizes and exponents of the word lists. The shifts flatten the head, so that
// the commonest English word stands in about two thirds of the English records
// and the commonest Chinese character in about a third of the Chinese ones.
const (
	englishWords = 60000
	chineseWords = 50000
	zipfExponent = 1.07
	englishShift = 2
	chineseShift = 10
	pureFunction = 30 // this many ranks are function words; then they alternate with content words
)

// vocabulary is a word list in order of rank.
type vocabulary struct {
	words    []string
	function []bool // by rank: a word of grammar, not of content
	ranks    *zipf
}

// functionEnglish are the commonest words of English grammar, commonest first.
const functionEnglish = `the of and to a in is it that was for on are as with his they be at this have from or had by not but
some what there we can out other were all your when up use word how said an each she which do their if will way about many
then them would write like so these her long make thing see him two has look more day could go come did my no most who over
know than call first people may down side been now any where find work part take get place made live after back little only
round man year came show every good me give our under name very through just much before too same tell also want must because
does such here why again off went while still own should might need never both last between around`

// functionChinese are the commonest words of Chinese grammar, commonest first.
const functionChinese = `的 了 是 在 我 不 有 和 就 人 都 一 这 上 也 他 你 到 说 要 去 会 着 没有 看 好 自己 那 来 与 对 为 能 而 及 把
被 让 从 用 我们 他们 什么 这个 可以 一个 因为 所以 但是 如果 还 很 再 又 只 已经 现在 时候 知道 怎么 这样 那个 或者 并 以 其 之 于
等 中 下 后 前 里 多 少 大 小 更 最 每 某 各 该 此 由 向 将 给 跟 比 才 却 便 则 若 虽然 然后 只是 还是 不是 就是 可能 应该 需要 一些
这些 那些 它 她 您 吗 呢 吧 啊`

// newEnglish makes the English list: function words at the head, pseudo-words
// of one to four syllables behind, shorter ones first.
func newEnglish(seed uint64) *vocabulary {
	r := newRandom(seed, 1<<40)
	onsets := strings.Fields("b c d f g h j k l m n p r s t v w b c d f g h l m n p r s t v w bl br ch cl cr dr fl gr pl pr qu sh sp st th tr")
	vowels := strings.Fields("a e i o u a e i o u a e i o ai ea ee io ou")
	codas := strings.Fields("b d g l m n p r s t d l m n r s t ck ld mp nd ng nt rd rn st x")
	return newVocabulary(strings.Fields(functionEnglish), englishWords, englishShift, func(rank int) string {
		syllables := r.between(1, 2)
		if rank > 1500 {
			syllables = r.between(2, 3)
		}
		if rank > 20000 {
			syllables = r.between(2, 4)
		}
		var b strings.Builder
		for range syllables {
			b.WriteString(onsets[r.below(len(onsets))])
			b.WriteString(vowels[r.below(len(vowels))])
			if r.below(5) < 2 || syllables == 1 {
				b.WriteString(codas[r.below(len(codas))])
			}
		}
		return b.String()
	})
}

// newChinese makes the Chinese list: function words at the head, pseudo-words
// of one to four characters behind, most of them of two. The characters are
// the 3,755 of the first level of GB 2312, with frequencies of their own.
func newChinese(seed uint64) *vocabulary {
	r := newRandom(seed, 1<<41)
	characters := commonCharacters()
	for i := len(characters) - 1; i > 0; i-- {
		j := r.below(i + 1)
		characters[i], characters[j] = characters[j], characters[i]
	}
	frequency := newZipf(len(characters), 1, 60)
	return newVocabulary(strings.Fields(functionChinese), chineseWords, chineseShift, func(int) string {
		length := 2
		switch p := r.below(100); {
		case p < 6:
			length = 1
		case p < 72:
			length = 2
		case p < 90:
			length = 3
		default:
			length = 4
		}
		word := make([]rune, length)
		for i := range word {
			word[i] = characters[frequency.draw(r)]
		}
		return string(word)
	})
}

// newVocabulary fills the ranks: function words alone at first, then in turn
// with what invent gives, until they are used up. Words do not repeat.
func newVocabulary(function []string, n int, shift float64, invent func(rank int) string) *vocabulary {
	v := &vocabulary{words: make([]string, 0, n), function: make([]bool, 0, n), ranks: newZipf(n, zipfExponent, shift)}
	seen := make(map[string]bool, n)
	for _, w := range function {
		seen[w] = true
	}
	for len(v.words) < n {
		rank := len(v.words)
		if len(function) > 0 && (rank < pureFunction || rank%2 == 0) {
			v.words, v.function = append(v.words, function[0]), append(v.function, true)
			function = function[1:]
			continue
		}
		w := invent(rank)
		if seen[w] {
			continue
		}
		seen[w] = true
		v.words, v.function = append(v.words, w), append(v.function, false)
	}
	return v
}

// commonCharacters are the Chinese characters of GB 2312's first level, which
// is the list of the common ones. It decodes them instead of listing them.
func commonCharacters() []rune {
	decode := simplifiedchinese.GBK.NewDecoder()
	var out []rune
	for row := byte(0xB0); row <= 0xD7; row++ {
		for cell := byte(0xA1); cell <= 0xFE; cell++ {
			s, err := decode.Bytes([]byte{row, cell})
			if c, size := utf8.DecodeRune(s); err == nil && size == 3 && c >= 0x4E00 && c <= 0x9FFF {
				out = append(out, c)
			}
		}
	}
	return out
}
