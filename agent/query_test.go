package agent

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/loci-memory/loci"
)

// selected gives the ids of the facts that meet a selection, nearest to x first.
func (m *testMemory) selected(s Selection) []loci.PointID {
	m.t.Helper()
	return hitIDs(must[*Hits](m.t)(m.facts.QueryHits(m.t.Context(), QueryRequest{Embedding: x(), Selection: s})).Hits)
}

func TestQueryScores(t *testing.T) { // Q1
	m := openMemory(t, 4)
	for id, v := range map[loci.PointID][]float32{1: x(), 2: d(), 3: y(), 4: {-1, 0, 0, 0}} {
		m.store(id, fmt.Sprint("text ", id), v)
	}
	hits := must[[]Hit](t)(m.facts.Query(t.Context(), x(), 10))
	wantIDs(t, "k 10", hitIDs(hits), 1, 2, 3, 4)
	for i, want := range []float64{1, 0.6, 0, -1} {
		if !near(hits[i].Score, want) || hits[i].Content != fmt.Sprint("text ", hits[i].ID) {
			t.Errorf("hit %+v, want score %v", hits[i], want)
		}
	}
	wantIDs(t, "k 2", m.query(x(), 2), 1, 2)
	m = openMemory(t, 4)
	for _, id := range []loci.PointID{1 << 63, 9, 1} {
		m.store(id, "text", x())
	}
	wantIDs(t, "ties", m.query(x(), 10), 1, 9, 1<<63)
	wantIDs(t, "ties, k 2", m.query(x(), 2), 1, 9)
}

func TestQueryBounds(t *testing.T) { // Q2
	m := openMemory(t, 4)
	m.storeMany(3)
	for _, k := range []int{0, -1, 10001} {
		_, err := m.facts.Query(t.Context(), x(), k)
		wantField(t, err, loci.ErrValidation, "k")
	}
	_, err := m.facts.QueryFiltered(t.Context(), x(), 1, nil, -1)
	wantField(t, err, loci.ErrValidation, "offset")
	wantIDs(t, "k 10000", m.query(x(), 10000), 0, 1, 2)
	for _, offset := range []int{3, 10_000, 10_001, math.MaxInt} {
		if hits := must[[]Hit](t)(m.facts.QueryFiltered(t.Context(), x(), 10000, nil, offset)); len(hits) != 0 {
			t.Errorf("offset %d: %+v", offset, hits)
		}
		if hits := must[*Hits](t)(m.facts.QueryText(t.Context(), TextRequest{Text: "text", Offset: offset})).Hits; len(hits) != 0 {
			t.Errorf("offset %d by text: %+v", offset, hits)
		}
	}
	wantIDs(t, "the last", hitIDs(must[[]Hit](t)(m.facts.QueryFiltered(t.Context(), x(), 10000, nil, 2))), 2)
}

func TestQueryFilteredIsExact(t *testing.T) { // Q3
	m := openMemory(t, 4)
	n := 10_000
	if testing.Short() {
		n = 600
	}
	m.storeMany(n)
	rare := []loci.PointID{17, loci.PointID(n / 2), loci.PointID(n - 1)}
	for i, id := range rare {
		m.store(id, "rare", []float32{-1, float32(i), 0, 0}, withMetadata(`{"k":1,"o":{"a":1}}`))
	}
	want := []loci.PointID{rare[2], rare[1], rare[0]}
	for name, filter := range map[string]string{"a number": `{"k":1}`, "an object": `{"o":{"a":1.0}}`, "text": `{"content":"rare"}`} {
		for _, offset := range []int{0, 1} {
			hits := must[[]Hit](t)(m.facts.QueryFiltered(t.Context(), x(), 10, loci.Metadata(filter), offset))
			wantIDs(t, name, hitIDs(hits), want[offset:]...)
		}
	}
}

func TestQueryPages(t *testing.T) { // Q4
	m := openMemory(t, 4)
	for i := range 300 {
		v := []float32{1, float32(i % 10), 0, 0}
		m.store(loci.PointID((i*7919)%300), "text", v, withMetadata(fmt.Sprintf(`{"in":%t}`, i%3 == 0)))
	}
	filter := loci.Metadata(`{"in":true}`)
	all := must[[]Hit](t)(m.facts.QueryFiltered(t.Context(), x(), 100, filter, 0))
	var pages []Hit
	for offset := 0; offset <= 98; offset += 7 {
		pages = append(pages, must[[]Hit](t)(m.facts.QueryFiltered(t.Context(), x(), 7, filter, offset))...)
	}
	if len(all) != 100 || !slices.Equal(pages, all) {
		t.Errorf("%d hits at once, %d by pages", len(all), len(pages))
	}
}

func TestQueryAsOfValid(t *testing.T) { // Q6
	m := openMemory(t, 4)
	m.store(1, "later", x(), withValidity(new(T+day), nil))
	m.store(2, "before", x(), withValidity(nil, new(T)))
	wantIDs(t, "now", m.query(x(), 10))
	wantIDs(t, "by words", m.words("later before"))
	wantIDs(t, "a day later", m.selected(Selection{AsOfValidUS: new(T + day)}), 1)
	wantIDs(t, "before", m.selected(Selection{AsOfValidUS: new(T - 1)}), 2)
	wantIDs(t, "live", m.ids(), 1, 2)
	m.clock.Set(T + day)
	wantIDs(t, "when its time has come", m.query(x(), 10), 1)
}

func TestQueryConditions(t *testing.T) { // Q7
	m := openMemory(t, 4)
	m.store(1, "text 1", x(), withMetadata(`{"k":1,"n":5}`), withTags("nova"))
	m.store(2, "text 2", x(), withMetadata(`{"k":1,"n":3}`), withTags("nova"))
	m.store(3, "text 3", x(), withMetadata(`{"k":1,"n":5}`))
	m.store(4, "text 4", x(), withMetadata(`{"k":"2"}`))
	m.store(5, "text 5", x())
	where := func(key string, op loci.Operator, value string) []loci.Condition {
		return []loci.Condition{{Key: key, Op: op, Value: []byte(value)}}
	}
	all := Selection{Filter: loci.Metadata(`{"k":1}`), Where: where("n", loci.OpGt, `4`), Tags: []string{"ｎｏｖａ "}}
	wantIDs(t, "all", m.selected(all), 1)
	wantIDs(t, "by text", hitIDs(must[*Hits](t)(m.facts.QueryText(t.Context(), TextRequest{Text: "text", Selection: all})).Hits), 1)
	for name, c := range map[string]struct {
		where []loci.Condition
		want  []loci.PointID
	}{
		"gt":            {where("k", loci.OpGt, `1`), nil},
		"exists false":  {where("k", loci.OpExists, `false`), []loci.PointID{5}},
		"ne":            {where("k", loci.OpNe, `1`), []loci.PointID{4}},
		"in":            {where("k", loci.OpIn, `[1,"2"]`), []loci.PointID{1, 2, 3, 4}},
		"eq by a float": {where("n", loci.OpEq, `3.0`), []loci.PointID{2}},
	} {
		wantIDs(t, name, m.selected(Selection{Where: c.where}), c.want...)
	}
	for field, bad := range map[string]Selection{
		"where[0].value": {Where: where("k", loci.OpEq, `{"a":1}`)},
		"where[0].op":    {Where: where("k", "like", `1`)},
		"filter":         {Filter: loci.Metadata(`[]`)},
		"tags[0]":        {Tags: []string{"a\xff"}},
		"thread":         {Thread: new("")},
	} {
		_, err := m.facts.QueryHits(t.Context(), QueryRequest{Embedding: x(), Selection: bad})
		wantField(t, err, loci.ErrValidation, field)
		_, err = m.facts.QueryText(t.Context(), TextRequest{Text: "text", Selection: bad})
		wantField(t, err, loci.ErrValidation, field)
	}
}

func TestQueryWhileWriting(t *testing.T) { // Q8
	m := openMemory(t, 4)
	m.store(1, "x", x())
	m.store(2, "other", d())
	rounds := 100
	if testing.Short() {
		rounds = 40
	}
	stop := make(chan struct{})
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				hits, err := m.facts.Query(t.Context(), x(), 10)
				if err != nil {
					t.Error(err)
					return
				}
				seen := 0
				for _, h := range hits {
					if h.ID != 1 {
						continue
					}
					if seen++; !(h.Score == 1 && h.Content == "x" || h.Score == 0 && h.Content == "y") {
						t.Errorf("mixed: %+v", h)
					}
				}
				if seen != 1 || len(hits) != 2 {
					t.Errorf("hits %+v", hits)
				}
			}
		})
	}
	for i := range rounds {
		if i%2 == 0 {
			m.store(1, "y", y())
		} else {
			m.store(1, "x", x())
		}
	}
	close(stop)
	all.Wait()
}

func TestFilterEquality(t *testing.T) { // J1 to J6
	m := openMemory(t, 4)
	for id, raw := range []string{
		1: `{"n":1}`, 2: `{"z":0}`, 3: `{"n":9007199254740993}`, 4: `{"o":{"a":1,"b":[1,2]}}`, 5: `{"e":[],"f":{}}`, 6: `{"v":null}`,
		7: `{}`, 8: `{"v":false}`, 9: `{"v":0}`, 10: `{"v":""}`, 11: `{"s":"a","a.b":1,"u":{"b":1}}`, 12: `{"c":"é"}`,
		13: `{"n":1.0000000000000000001}`, 14: `{"big":1e400}`, 15: `{"big":1e401}`, 16: `{"t":0.1}`, 17: `{"z":-0.0}`,
	} {
		if id > 0 {
			m.store(loci.PointID(id), fmt.Sprint("text ", id), x(), withMetadata(raw))
		}
	}
	for filter, want := range map[string][]loci.PointID{
		`{"n":1}`: {1}, `{"n":1.0}`: {1}, `{"n":1e0}`: {1}, `{"n":10e-1}`: {1}, `{"n":0.1e1}`: {1},
		`{"n":"1"}`: nil, `{"n":true}`: nil, `{"n":[1]}`: nil,
		`{"z":0}`: {2, 17}, `{"z":-0}`: {2, 17}, `{"z":-0.0}`: {2, 17}, `{"z":0e5}`: {2, 17},
		`{"n":9007199254740993.0}`: {3}, `{"n":9007199254740992}`: nil,
		`{"n":1.0000000000000000001}`: {13},
		`{"big":1e400}`:               {14}, `{"big":10e400}`: {15}, `{"big":1e402}`: nil,
		`{"t":0.1}`: {16}, `{"t":0.1000000000000000001}`: nil, `{"t":1e-1}`: {16},
		`{"o":{"b":[1.0,2],"a":1}}`: {4}, `{"o":{"a":1}}`: nil, `{"o":{"a":1,"b":[2,1]}}`: nil, `{"o":{"a":1,"b":[1,2],"c":null}}`: nil,
		`{"e":[]}`: {5}, `{"e":{}}`: nil, `{"f":{}}`: {5}, `{"f":[]}`: nil, `{"e":[null]}`: nil,
		`{"v":null}`: {6}, `{"v":false}`: {8}, `{"v":0}`: {9}, `{"v":""}`: {10},
		`{"s":"\u0061"}`: {11}, `{"a.b":1}`: {11}, `{"s":"A"}`: nil, `{"u.b":1}`: nil, `{"u":{"b":1}}`: {11},
		`{"c":"é"}`: {12}, `{"c":"e\u0301"}`: nil, `{"nobody":1}`: nil, `{"content":"text 7"}`: {7}, `{"content":"text"}`: nil,
	} {
		wantIDs(t, filter, m.selected(Selection{Filter: loci.Metadata(filter)}), want...)
		got := hitIDs(must[*Hits](t)(m.facts.QueryText(t.Context(), TextRequest{Text: "text", Selection: Selection{Filter: loci.Metadata(filter)}})).Hits)
		slices.Sort(got)
		wantIDs(t, "by text "+filter, got, want...)
	}
	for _, everything := range []string{"", `{}`, `null`} { // J5
		hits := must[[]Hit](t)(m.facts.QueryFiltered(t.Context(), x(), 100, loci.Metadata(everything), 0))
		if len(hits) != 17 {
			t.Errorf("filter %q: %d hits", everything, len(hits))
		}
	}
	for _, bad := range []string{`[]`, `"a"`, `{"a":1,"a":2}`, `{"_loci_x":1}`, `{"a":`, `{"content":5}`, `{"content":null}`} {
		_, err := m.facts.QueryFiltered(t.Context(), x(), 1, loci.Metadata(bad), 0)
		wantField(t, err, loci.ErrValidation, "filter")
	}
}

func TestFilterFollowsUpdates(t *testing.T) { // J7
	m := openMemory(t, 4)
	m.store(1, "text 1", x(), withMetadata(`{"k":1}`))
	wantIDs(t, "before", m.selected(Selection{Filter: loci.Metadata(`{"k":1}`)}), 1)
	m.update(1, `{"k":2,"content":"text 2"}`)
	for filter, want := range map[string][]loci.PointID{`{"k":1}`: nil, `{"k":2}`: {1}, `{"content":"text 1"}`: nil, `{"content":"text 2"}`: {1}} {
		wantIDs(t, filter, m.selected(Selection{Filter: loci.Metadata(filter)}), want...)
	}
}
