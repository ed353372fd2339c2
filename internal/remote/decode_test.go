package remote

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestRoundTrip: vectors come back as they were, from numbers and from base64,
// in whatever order they are listed.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		finite := rapid.Float32().Filter(func(x float32) bool { return !math.IsInf(float64(x), 0) && x == x })
		n := rapid.IntRange(1, 6).Draw(t, "n")
		want := make([][]float32, n)
		var data []string
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		for _, i := range rapid.Permutation(order).Draw(t, "order") {
			want[i] = rapid.SliceOfN(finite, 1, 5).Draw(t, "vector")
			var form string
			if rapid.Bool().Draw(t, "packed") {
				var raw []byte
				for _, x := range want[i] {
					raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
				}
				form = `"` + base64.StdEncoding.EncodeToString(raw) + `"`
			} else {
				text, err := json.MarshalIndent(want[i], "", " ")
				if err != nil {
					t.Fatal(err)
				}
				form = string(text)
			}
			data = append(data, fmt.Sprintf(`{"index": %d, "embedding": %s}`, i, form))
		}
		got, err := IndexedVectors([]byte(`{"data": [`+strings.Join(data, ", ")+`]}`), n)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%v, %v; not %v", got, err, want)
		}
	})
}

// FuzzVectors: whatever a service answers, there is an error or there are as
// many vectors as asked for, with finite numbers.
func FuzzVectors(f *testing.F) {
	for _, s := range []string{
		`{"data": [{"index": 1, "embedding": [1, -2.5e-3]}, {"index": 0, "embedding": "AACAPw=="}]}`,
		`{"data": [{"index": 0, "embedding": [null]}, {"index": 0}]}`,
		`[[1, 2], [3, 4]]`, `["AACAPw==", [ ]]`, `[[1,,2], "x"]`, `{`, `null`, `[[1e400], [[1]]]`, `[[-], [1-2]]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		check := func(vectors [][]float32, err error) {
			if err != nil {
				return
			}
			if len(vectors) != 2 {
				t.Fatalf("%d vectors", len(vectors))
			}
			for _, v := range vectors {
				if len(v) == 0 {
					t.Fatal("an empty vector")
				}
				for _, x := range v {
					if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
						t.Fatal(x)
					}
				}
			}
		}
		check(IndexedVectors(answer, 2))
		var rows []json.RawMessage
		if json.Unmarshal(answer, &rows) == nil {
			vectors, err := Vectors(rows, 2)
			check(vectors, err)
			// The hand-written parser accepts lists of numbers and nothing else.
			for i, row := range rows {
				var naive []*float32
				if err == nil && row[0] == '[' && (json.Unmarshal(row, &naive) != nil || len(naive) != len(vectors[i])) {
					t.Fatalf("%s gave %v", row, vectors[i])
				}
			}
		}
	})
}

// FuzzScores: the same for rerankers.
func FuzzScores(f *testing.F) {
	for _, s := range []string{
		`{"results": [{"index": 1, "relevance_score": 0.5}, {"index": 0, "relevance_score": -1}]}`,
		`{"data": [{"index": 0, "relevance_score": 1e308}, {"index": 1, "score": 2}]}`,
		`[{"index": 1, "score": 1}, {"index": 0, "score": null}]`, `{"results": null}`, `[`, `[{"index": -1}, {}]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		for _, decode := range []func([]byte, int) ([]float64, error){Results, Data, List} {
			scores, err := decode(answer, 2)
			if err == nil && len(scores) != 2 {
				t.Fatalf("%d scores", len(scores))
			}
			for _, x := range scores {
				if math.IsNaN(x) || math.IsInf(x, 0) {
					t.Fatal(x)
				}
			}
		}
	})
}

// FuzzComplaint: no body of an error makes one that is long or unprintable.
func FuzzComplaint(f *testing.F) {
	f.Add([]byte(`{"error": {"message": "bad", "code": "c", "param": "input"}}`), "bad")
	f.Add([]byte(`{"detail": [{"loc": ["body", "x"], "msg": "m"}]}`), "a longer text than that")
	f.Add([]byte("plain words"), "plain words")
	f.Fuzz(func(t *testing.T, body []byte, text string) {
		said := parseComplaint(body)
		got := excerpt(hide(said.message, nil, []string{text}))
		if len([]rune(got)) > maxExcerpt+3 || strings.ContainsAny(got, "\n\r\x00\x1b") {
			t.Fatalf("%q", got)
		}
	})
}

func TestUnreadable(t *testing.T) {
	var x struct{ A []int }
	for text, says := range map[string]string{
		`{"a": ["secret words"]}`: "a JSON string in the place of another type, at byte",
		`{"a": [1e99]}`:           "a JSON number in the place of another type, at byte",
		`{"a": [`:                 "not JSON: unexpected end",
	} {
		err := Unreadable(json.Unmarshal([]byte(text), &x))
		if !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "1e99") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// BenchmarkVectors reads one vector of 768 dimensions in either form.
func BenchmarkVectors(b *testing.B) {
	for name, embedding := range map[string]string{
		"numbers": "[" + strings.Repeat("-0.0123456789,", 767) + "0.5]",
		"base64":  `"` + base64.StdEncoding.EncodeToString(make([]byte, 4*768)) + `"`,
	} {
		answer := []byte(`{"data":[{"index":0,"embedding":` + embedding + `}]}`)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := IndexedVectors(answer, 1); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(answer)), "bytes")
		})
	}
}
