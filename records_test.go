package loci

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/internal/meta"
)

func TestRecords(t *testing.T) {
	cases := []struct {
		name string
		run  func(t *testing.T, db *DB)
	}{
		{"R1", func(t *testing.T, db *DB) {
			var last ID
			for range 3 {
				m := addMemory(t, db, MemoryInput{Judgment: "m"})
				if m.ID <= last {
					t.Error(m.ID)
				}
				last = m.ID
			}
			must[*Receipt[bool]](t)(db.Memories().Delete(t.Context(), last, ReadFilter{}))
			if m := addMemory(t, db, MemoryInput{Judgment: "m"}); m.ID <= last {
				t.Error(m.ID)
			}
		}},
		{"R2", func(t *testing.T, db *DB) {
			_, err := db.Memories().Upsert(t.Context(), MemoryInput{RecordInput: RecordInput{ID: 777777}, Judgment: "m"})
			wantCode(t, err, ErrNotFound)
			if s := stateOf(t, db); s != (dbState{}) {
				t.Errorf("%+v", s)
			}
		}},
		{"R3", func(t *testing.T, db *DB) {
			m := addMemory(t, db, MemoryInput{RecordInput: RecordInput{Tags: []string{" NOVA ", "ｎｏｖａ", "机器   学习", " "}}, Judgment: "m"})
			if d := cmp.Diff([]string{"nova", "机器 学习"}, getMemory(t, db, m.ID, ReadFilter{}).Tags); d != "" {
				t.Error(d)
			}
		}},
		{"R4", func(t *testing.T, db *DB) {
			both := addMemory(t, db, MemoryInput{RecordInput: RecordInput{Tags: []string{"a", "b"}}, Judgment: "m"})
			addMemory(t, db, MemoryInput{RecordInput: RecordInput{Tags: []string{"a"}}, Judgment: "m"})
			if got := listMemories(t, db, ReadFilter{Tags: []string{"B", "a "}}); len(got) != 1 || got[0].ID != both.ID {
				t.Errorf("%+v", got)
			}
			if got := listMemories(t, db, ReadFilter{Tags: []string{"a", "nobody"}}); len(got) != 0 {
				t.Errorf("%+v", got)
			}
		}},
		{"R5", func(t *testing.T, db *DB) {
			public := addMemory(t, db, MemoryInput{Judgment: "m"})
			private := addMemory(t, db, MemoryInput{RecordInput: RecordInput{Scope: new("private")}, Judgment: "m"})
			if got := listMemories(t, db, ReadFilter{}); len(got) != 1 || got[0].ID != public.ID {
				t.Errorf("%+v", got)
			}
			_, err := db.Memories().Get(t.Context(), private.ID, ReadFilter{})
			wantCode(t, err, ErrNotFound)
			if got := listMemories(t, db, scoped("public", "private")); len(got) != 2 {
				t.Errorf("%+v", got)
			}
			if got := listMemories(t, db, scoped("public", "never-used")); len(got) != 1 { // R7
				t.Errorf("%+v", got)
			}
		}},
		{"R6", func(t *testing.T, db *DB) {
			f, s, ctx := ReadFilter{Scopes: []string{}}, db.Memories(), t.Context()
			_, err := s.Get(ctx, 1, f)
			wantCode(t, err, ErrValidation)
			_, err = s.List(ctx, PageRequest{Filter: f})
			wantCode(t, err, ErrValidation)
			_, err = s.Delete(ctx, 1, f)
			wantCode(t, err, ErrValidation)
			_, err = s.DeleteByFilter(ctx, DeleteRequest{Filter: f})
			wantCode(t, err, ErrValidation)
			_, err = s.Feedback(ctx, FeedbackRequest{Filter: f})
			wantCode(t, err, ErrValidation)
			_, err = s.Decay(ctx, DecayRequest{Filter: f})
			if e := wantCode(t, err, ErrValidation); e.Field != "filter.scopes" {
				t.Error(e.Field)
			}
		}},
		{"R8", func(t *testing.T, db *DB) {
			here := addMemory(t, db, MemoryInput{Judgment: "m", RecordInput: RecordInput{Tags: []string{"t"}}})
			there := addMemory(t, db, MemoryInput{Judgment: "m", RecordInput: RecordInput{Tags: []string{"t"}, Namespace: new("港务")}})
			for _, f := range []ReadFilter{{}, {Tags: []string{"t"}}} {
				if got := listMemories(t, db, f); len(got) != 1 || got[0].ID != here.ID {
					t.Errorf("%+v", got)
				}
				f.Namespace = new("港务")
				if got := listMemories(t, db, f); len(got) != 1 || got[0].ID != there.ID {
					t.Errorf("%+v", got)
				}
				f.Namespace = new("unknown")
				if got := listMemories(t, db, f); len(got) != 0 {
					t.Errorf("%+v", got)
				}
			}
			_, err := db.Memories().Get(t.Context(), there.ID, ReadFilter{})
			wantCode(t, err, ErrNotFound)
		}},
		{"R9", func(t *testing.T, db *DB) {
			m := addMemory(t, db, MemoryInput{Judgment: "m", RecordInput: RecordInput{Namespace: new("Harbor")}})
			_, err := db.Memories().Get(t.Context(), m.ID, ReadFilter{Namespace: new("harbor")})
			wantCode(t, err, ErrNotFound)
			if got := listMemories(t, db, ReadFilter{Namespace: new("harbor")}); len(got) != 0 {
				t.Errorf("%+v", got)
			}
		}},
		{"R10", func(t *testing.T, db *DB) {
			m := addMemory(t, db, MemoryInput{Judgment: "m"})
			before := stateOf(t, db)
			for _, in := range []RecordInput{{ID: m.ID, ExpectedRevision: new(int64(0))}, {ExpectedRevision: new(int64(0))}, {ExpectedRevision: new(int64(1))}} {
				_, err := db.Memories().Upsert(t.Context(), MemoryInput{RecordInput: in, Judgment: "n"})
				wantCode(t, err, ErrStaleRevision)
			}
			if after := stateOf(t, db); after != before {
				t.Errorf("%+v, was %+v", after, before)
			}
			n := addMemory(t, db, MemoryInput{RecordInput: RecordInput{ID: m.ID, ExpectedRevision: &m.Revision}, Judgment: "n"})
			if n.Revision <= m.Revision {
				t.Error(n.Revision)
			}
		}},
		{"R11", func(t *testing.T, db *DB) {
			for range 10 {
				addMemory(t, db, MemoryInput{Judgment: "m"})
			}
			r := must[*Receipt[[]Memory]](t)(db.Memories().UpsertMany(t.Context(), []MemoryInput{{Judgment: "a"}, {Judgment: "b"}, {Judgment: "c"}}))
			if r.Revision != 11 || stateOf(t, db).revision != 11 {
				t.Error(r.Revision)
			}
		}},
		{"R12", func(t *testing.T, db *DB) {
			m := addMemory(t, db, MemoryInput{RecordInput: RecordInput{CreatedAtUS: new(int64(1000))}, Judgment: "m"})
			m = addMemory(t, db, MemoryInput{RecordInput: RecordInput{ID: m.ID, CreatedAtUS: new(int64(9))}, Judgment: "m"})
			if m.CreatedAtUS != 1000 || m.UpdatedAtUS != newTestClock().Now().UnixMicro() {
				t.Error(m.CreatedAtUS, m.UpdatedAtUS)
			}
			for _, in := range []RecordInput{{CreatedAtUS: new(int64(20)), UpdatedAtUS: new(int64(10))}, {ID: m.ID, UpdatedAtUS: new(int64(999))}} {
				_, err := db.Memories().Upsert(t.Context(), MemoryInput{RecordInput: in, Judgment: "m"})
				wantCode(t, err, ErrValidation)
			}
			ahead := newTestClock().Now().UnixMicro() + 3_600_000_000
			if m := addMemory(t, db, MemoryInput{RecordInput: RecordInput{CreatedAtUS: &ahead}, Judgment: "m"}); m.UpdatedAtUS != ahead {
				t.Error(m.UpdatedAtUS)
			}
		}},
		{"R13", func(t *testing.T, db *DB) {
			one, zero := new(int64(1)), new(int64(0))
			for _, bad := range []Evidence{{Source: " "}, {Source: "s", Offset: one}, {Source: "s", Limit: one},
				{Source: "s", Offset: zero, Limit: one}, {Source: "s", Offset: one, Limit: zero},
				{Source: "s", Metadata: Metadata(`[]`)}, {Source: "s", ChunkID: new(ID(0))}, {Source: "s\xff"}} {
				_, err := db.Memories().Upsert(t.Context(), MemoryInput{RecordInput: RecordInput{Evidence: []Evidence{bad}}, Judgment: "m"})
				wantCode(t, err, ErrValidation)
			}
			good := []Evidence{{Source: "s"}, {Source: "s", Offset: one, Limit: one, ChunkID: new(ID(5)), Quote: "q", SourceRevision: "v", Metadata: Metadata(`{"k":[1]}`)}}
			m := addMemory(t, db, MemoryInput{RecordInput: RecordInput{Evidence: good}, Judgment: "m"})
			if d := cmp.Diff(good, getMemory(t, db, m.ID, ReadFilter{}).Evidence); d != "" {
				t.Error(d)
			}
		}},
		{"R14", func(t *testing.T, db *DB) {
			m := addMemory(t, db, MemoryInput{Judgment: "m", RecordInput: RecordInput{Tags: []string{"t"}}})
			n := addMemory(t, db, MemoryInput{RecordInput: RecordInput{ID: m.ID, Scope: new("private"), Tags: []string{"t"}}, Judgment: "m"})
			if n.ID != m.ID || len(listMemories(t, db, ReadFilter{})) != 0 || len(listMemories(t, db, scoped("private"))) != 1 {
				t.Errorf("%+v", n)
			}
		}},
		{"R15", func(t *testing.T, db *DB) {
			var want []ID
			for i := range 5 {
				scope := []string{"public", "b"}[i%2]
				want = append(want, addMemory(t, db, MemoryInput{RecordInput: RecordInput{Scope: &scope}, Judgment: "m"}).ID)
			}
			var got []ID
			var sizes []int
			req := PageRequest{Filter: scoped("public", "b"), Limit: new(2)}
			for {
				page := must[*Page[Memory]](t)(db.Memories().List(t.Context(), req))
				sizes = append(sizes, len(page.Items))
				for _, m := range page.Items {
					got = append(got, m.ID)
					must[*Receipt[bool]](t)(db.Memories().Delete(t.Context(), m.ID, scoped("public", "b")))
				}
				if req.After = page.NextCursor; req.After == 0 {
					break
				}
			}
			if !slices.Equal(sizes, []int{2, 2, 1}) || !slices.Equal(got, want) {
				t.Error(sizes, got)
			}
		}},
		{"W1", func(t *testing.T, db *DB) {
			ctx, s := t.Context(), db.Memories()
			before := stateOf(t, db)
			for _, word := range []string{"", " a", "a ", "a\tb", "a\xff", strings.Repeat("a", MaxScopeBytes+1)} {
				for _, in := range []MemoryInput{
					{RecordInput: RecordInput{Namespace: &word}}, {RecordInput: RecordInput{Scope: &word}},
					{RecordInput: RecordInput{Thread: &word}}, {MemoryType: &word},
				} {
					in.Judgment = "m"
					_, err := s.Upsert(ctx, in)
					wantCode(t, err, ErrValidation)
				}
				for _, f := range []ReadFilter{{Namespace: &word}, {Scopes: []string{word}}, {Thread: &word}} {
					_, err := s.List(ctx, PageRequest{Filter: f})
					wantCode(t, err, ErrValidation)
				}
			}
			_, err := s.Upsert(ctx, MemoryInput{Judgment: "m", RecordInput: RecordInput{Namespace: new(strings.Repeat("a", MaxNamespaceBytes+1))}})
			wantCode(t, err, ErrValidation)
			if after := stateOf(t, db); after != before { // W3
				t.Errorf("%+v, was %+v", after, before)
			}
			addMemory(t, db, MemoryInput{Judgment: "m", RecordInput: RecordInput{
				Namespace: new(strings.Repeat("a", MaxNamespaceBytes)), Scope: new(strings.Repeat("b", MaxScopeBytes))}})
		}},
		{"W2", func(t *testing.T, db *DB) {
			for limit, ok := range map[int]bool{0: false, -1: false, 1: true, MaxPage: true, MaxPage + 1: false} {
				_, err := db.Memories().List(t.Context(), PageRequest{Limit: &limit})
				if ok && err != nil {
					t.Error(limit, err)
				}
				if !ok {
					wantCode(t, err, ErrValidation)
				}
			}
		}},
		{"kinds and notes", func(t *testing.T, db *DB) {
			addMemory(t, db, MemoryInput{Judgment: "m"})
			for want, f := range map[int]ReadFilter{1: {Kinds: []Kind{KindNote, KindMemory}}, 0: {Kinds: []Kind{KindNote}}} {
				if got := listMemories(t, db, f); len(got) != want {
					t.Error(f, len(got))
				}
			}
			if got := listMemories(t, db, ReadFilter{NoteIDs: []ID{1}}); len(got) != 0 {
				t.Error(len(got))
			}
			_, err := db.Memories().List(t.Context(), PageRequest{Filter: ReadFilter{Kinds: []Kind{"thing"}}})
			wantCode(t, err, ErrValidation)
		}},
		{"time window", func(t *testing.T, db *DB) {
			for _, at := range []int64{10, 20, 30} {
				addMemory(t, db, MemoryInput{Judgment: "m", RecordInput: RecordInput{CreatedAtUS: &at, Tags: []string{"t"}, Thread: new("x")}})
			}
			for _, f := range []ReadFilter{{}, {Tags: []string{"t"}}, {Thread: new("x")}, scoped("public", "none")} {
				f.CreatedFromUS, f.CreatedToUS = new(int64(10)), new(int64(30))
				if got := listMemories(t, db, f); len(got) != 2 {
					t.Error(f, len(got))
				}
				f.CreatedFromUS = new(int64(11))
				if got := listMemories(t, db, f); len(got) != 1 || got[0].CreatedAtUS != 20 {
					t.Error(f, len(got))
				}
			}
			_, err := db.Memories().List(t.Context(), PageRequest{Filter: ReadFilter{CreatedFromUS: new(int64(2)), CreatedToUS: new(int64(1))}})
			wantCode(t, err, ErrValidation)
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(t, openTestDB(t, t.TempDir())) })
	}
}

func TestWhere(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	for _, metadata := range []string{`{"n":1,"s":"a"}`, `{"n":2.5,"s":"b"}`, `{"n":"2.5"}`, `{"n":null}`, `{"n":[1]}`, `{"n":true}`, `{"other":1}`, ``} {
		addMemory(t, db, MemoryInput{RecordInput: RecordInput{Metadata: Metadata(metadata)}, Judgment: "m " + metadata})
	}
	for _, c := range []struct {
		op    Operator
		value string
		want  []ID
	}{
		{OpEq, `1`, []ID{1}}, {OpEq, `1.0`, []ID{1}}, {OpEq, `"2.5"`, []ID{3}}, {OpEq, `null`, []ID{4}}, {OpEq, `true`, []ID{6}}, {OpEq, `false`, nil},
		{OpNe, `1`, []ID{2, 3, 4, 5, 6}}, {OpNe, `"x"`, []ID{1, 2, 3, 4, 5, 6}},
		{OpLt, `2.5`, []ID{1}}, {OpLe, `2.5`, []ID{1, 2}}, {OpGt, `1`, []ID{2}}, {OpGe, `1`, []ID{1, 2}}, {OpGe, `""`, []ID{3}},
		{OpIn, `[1,"2.5",null]`, []ID{1, 3, 4}}, {OpIn, `[]`, nil},
		{OpExists, ``, []ID{1, 2, 3, 4, 5, 6}}, {OpExists, `true`, []ID{1, 2, 3, 4, 5, 6}}, {OpExists, `false`, []ID{7, 8}},
	} {
		var got []ID
		for _, m := range listMemories(t, db, ReadFilter{Where: []Condition{{Key: "n", Op: c.op, Value: []byte(c.value)}}}) {
			got = append(got, m.ID)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("n %s %s: %v, want %v", c.op, c.value, got, c.want)
		}
	}
	for _, bad := range []Condition{
		{Key: "n", Op: "like", Value: []byte(`"a"`)}, {Key: "n", Op: OpEq}, {Key: "n", Op: OpEq, Value: []byte(`[1]`)}, {Key: "n", Op: OpEq, Value: []byte(`{`)},
		{Key: "n", Op: OpEq, Value: []byte(`1,"w":2`)}, {Key: "n", Op: OpLt, Value: []byte(`true`)}, {Key: "n", Op: OpIn, Value: []byte(`1`)},
		{Key: "n", Op: OpIn, Value: []byte(`[[1]]`)}, {Key: "n", Op: OpExists, Value: []byte(`1`)}, {Key: "\xff", Op: OpExists},
	} {
		_, err := db.Memories().List(t.Context(), PageRequest{Filter: ReadFilter{Where: []Condition{bad}}})
		wantCode(t, err, ErrValidation)
	}
}

func TestMetadata(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	for _, good := range []string{`{"z":1,"a":1.50,"big":123456789012345678901234567890,"e":1E5,"nested":{"b":[1,{"c":null}]}}`,
		` { "k" : "\u00e9\ud83d\ude00" } `, `{"":0}`} {
		m := addMemory(t, db, MemoryInput{RecordInput: RecordInput{Metadata: Metadata(good)}, Judgment: "m"})
		if got := getMemory(t, db, m.ID, ReadFilter{}).Metadata; string(got) != strings.TrimSpace(good) {
			t.Errorf("%s became %s", good, got)
		}
	}
	for _, bad := range []string{`[]`, `1`, `null`, `{`, `{"a":1,}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"a":{"b":1,"b":1}}`, "{\"a\":\"\xff\"}",
		`{"a":01}`, `{"a":+1}`, `{"a":.5}`, `{"a":1.}`, `{"a":NaN}`, `{"a":"\ud800"}`, `{"\ud800x":1}`, "{\"a\":\"\n\"}", `{"a":1}{}`, `{"a" 1}`, `{a:1}`, `{"a":tru}`, `{"a":"\x"}`,
		`{"a":"\u12"}`, `{"a":"\ud83d\u0041"}`, `{"a":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`, `{"a":"` + strings.Repeat("x", MaxMetadataBytes) + `"}`} {
		_, err := db.Memories().Upsert(t.Context(), MemoryInput{RecordInput: RecordInput{Metadata: Metadata(bad)}, Judgment: "m"})
		if e := wantCode(t, err, ErrValidation); e.Field != "metadata" {
			t.Error(e)
		}
	}
	if got := (Metadata)(nil).String(); got != "{}" {
		t.Error(got)
	}
	if !Metadata(`{"a":100,"b":[1.0,"x"]}`).Equal(Metadata(`{"b":[1,"\u0078"],"a":1e2}`)) {
		t.Error("equal by value")
	}
	for _, other := range []string{`{"a":1}`, `{"a":"100","b":[1.0,"x"]}`, `{"a":100,"b":[1.0,"x"],"c":1}`, `{"a":100.0000000000000000001,"b":[1.0,"x"]}`} {
		if Metadata(`{"a":100,"b":[1.0,"x"]}`).Equal(Metadata(other)) {
			t.Error(other)
		}
	}
	if got := Metadata(`{"a":{"b": 1}}`).Get("a"); string(got) != `{"b": 1}` {
		t.Errorf("%s", got)
	}
	many := make([]string, 40)
	for i := range many {
		many[i] = fmt.Sprintf(`"k%d":%d`, i%39, i)
	}
	if _, err := meta.Scan(Metadata("{" + strings.Join(many, ",") + "}")); err == nil {
		t.Error("a key twice among many was taken")
	}
	if _, err := meta.Scan(Metadata("{" + strings.Join(many[:39], ",") + "}")); err != nil {
		t.Error(err)
	}
}

func FuzzMetadata(f *testing.F) {
	f.Add([]byte(`{"a":[1,2.5e-3,{"b":null}],"c":"\ud83d\ude00"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, err := meta.Scan(text); err != nil || len(text) == 0 {
			return
		}
		m := Metadata(text)
		if !m.Equal(m) {
			t.Fatal("does not equal itself")
		}
		merged, err := m.merge(m)
		if err != nil || !merged.Equal(m) {
			t.Fatalf("merged with itself: %s, %v", merged, err)
		}
	})
}

func TestIDJSON(t *testing.T) {
	for text, want := range map[string]ID{`"9223372036854775807"`: math.MaxInt64, `9007199254740993`: 9007199254740993, `0`: 0, `"-1"`: -1} {
		var id ID
		if err := id.UnmarshalJSON([]byte(text)); err != nil || id != want {
			t.Error(text, id, err)
		}
	}
	for _, text := range []string{`1.5`, `""`, `"x"`, `1e3`, `9223372036854775808`, `true`, `"+1"`} {
		var id ID
		if err := id.UnmarshalJSON([]byte(text)); err == nil {
			t.Error(text)
		}
	}
	if got, _ := ID(9007199254740993).MarshalJSON(); string(got) != `"9007199254740993"` {
		t.Errorf("%s", got)
	}
}
