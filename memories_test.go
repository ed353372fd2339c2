package loci

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMemories(t *testing.T) {
	cases := []struct {
		name string
		run  func(t *testing.T, db *DB)
	}{
		{"M1", func(t *testing.T, db *DB) {
			m := addMemory(t, db, MemoryInput{Judgment: "  潮水表每周更新  "})
			want := Memory{
				Header: Header{ID: m.ID, Namespace: "default", Scope: "public", Tags: []string{}, Evidence: []Evidence{},
					CreatedAtUS: newTestClock().Now().UnixMicro(), UpdatedAtUS: newTestClock().Now().UnixMicro(), Revision: 1},
				MemoryType: "knowledge", Judgment: "潮水表每周更新", State: MemoryState{Strength: 1},
			}
			if d := cmp.Diff(want, m); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(want, getMemory(t, db, m.ID, ReadFilter{})); d != "" {
				t.Error(d)
			}
		}},
		{"M2", func(t *testing.T, db *DB) {
			ctx, s := t.Context(), db.Memories()
			_, err := s.Upsert(ctx, MemoryInput{Judgment: "   "})
			wantCode(t, err, ErrValidation)
			for _, word := range []string{"", " skill"} {
				_, err := s.Upsert(ctx, MemoryInput{Judgment: "x", MemoryType: &word})
				wantCode(t, err, ErrValidation)
			}
			if m := addMemory(t, db, MemoryInput{Judgment: "x", MemoryType: new("recipe")}); m.MemoryType != "recipe" {
				t.Error(m.MemoryType)
			}
		}},
		{"M3", func(t *testing.T, db *DB) {
			m := addMemory(t, db, MemoryInput{RecordInput: RecordInput{Tags: []string{"港"}}, Judgment: "a", Reasoning: "旧", State: &MemoryState{Strength: 4}})
			m = addMemory(t, db, MemoryInput{RecordInput: RecordInput{ID: m.ID}, Judgment: "b"})
			m = getMemory(t, db, m.ID, ReadFilter{})
			if m.State.Strength != 4 || len(m.Tags) != 0 || m.Reasoning != "" || m.Judgment != "b" {
				t.Errorf("%+v", m)
			}
		}},
		{"M4", func(t *testing.T, db *DB) {
			before := stateOf(t, db)
			for _, st := range []MemoryState{{Strength: -1}, {UsefulCount: -1}, {UsefulScore: -0.5}, {Strength: math.NaN()},
				{Strength: math.Inf(1)}, {UsefulScore: math.NaN()}, {LastRecalledAtUS: new(int64(-1))}} {
				_, err := db.Memories().Upsert(t.Context(), MemoryInput{Judgment: "x", State: &st})
				wantCode(t, err, ErrValidation)
			}
			if after := stateOf(t, db); after != before {
				t.Errorf("%+v, was %+v", after, before)
			}
		}},
		{"M5", func(t *testing.T, db *DB) {
			before := stateOf(t, db)
			_, err := db.Memories().UpsertMany(t.Context(), []MemoryInput{{Judgment: "fine"}, {Judgment: " "}})
			if e := wantCode(t, err, ErrValidation); e.Field != "memories[1].judgment" {
				t.Error(e.Field)
			}
			if after := stateOf(t, db); after != before {
				t.Errorf("%+v, was %+v", after, before)
			}
		}},
		{"M6", func(t *testing.T, db *DB) {
			s := db.Memories()
			first := must[*Receipt[Memory]](t)(s.UpsertByJudgment(t.Context(), MemoryInput{Judgment: "港口 API  稳定"})).Value
			again := must[*Receipt[Memory]](t)(s.UpsertByJudgment(t.Context(), MemoryInput{Judgment: "港口 ａｐｉ 稳定"})).Value
			if again.ID != first.ID || again.Judgment != "港口 ａｐｉ 稳定" || stateOf(t, db).records != 1 {
				t.Errorf("%+v", again)
			}
			other := must[*Receipt[Memory]](t)(s.UpsertByJudgment(t.Context(), MemoryInput{Judgment: "港口 API 稳定。"})).Value
			if other.ID == first.ID || stateOf(t, db).records != 2 {
				t.Errorf("%+v", other)
			}
		}},
		{"M7", func(t *testing.T, db *DB) {
			s := db.Memories()
			for _, in := range []RecordInput{{}, {Scope: new("private")}, {Namespace: new("港务")}} {
				must[*Receipt[Memory]](t)(s.UpsertByJudgment(t.Context(), MemoryInput{RecordInput: in, Judgment: "same"}))
			}
			if n := stateOf(t, db).records; n != 3 {
				t.Error(n)
			}
		}},
		{"M8", func(t *testing.T, db *DB) {
			s := db.Memories()
			one := addMemory(t, db, MemoryInput{Judgment: "lonely"})
			a, b := addMemory(t, db, MemoryInput{Judgment: "twice"}), addMemory(t, db, MemoryInput{Judgment: "Twice"})
			before := stateOf(t, db)
			_, err := s.UpsertByJudgment(t.Context(), MemoryInput{Judgment: "twice"})
			e := wantCode(t, err, ErrConflict)
			if !strings.Contains(e.Message, fmt.Sprintf("%d, %d", a.ID, b.ID)) {
				t.Error(e.Message)
			}
			_, err = s.UpsertByJudgment(t.Context(), MemoryInput{RecordInput: RecordInput{ID: a.ID}, Judgment: "lonely"})
			if e := wantCode(t, err, ErrConflict); !strings.Contains(e.Message, fmt.Sprint(one.ID)) {
				t.Error(e.Message)
			}
			if after := stateOf(t, db); after != before {
				t.Errorf("%+v, was %+v", after, before)
			}
		}},
		{"M9", func(t *testing.T, db *DB) {
			s := db.Memories()
			addMemory(t, db, MemoryInput{RecordInput: RecordInput{Metadata: Metadata(`{"a":1,"b":2}`)}, Judgment: "m", State: &MemoryState{Strength: 7}})
			m := must[*Receipt[Memory]](t)(s.UpsertByJudgment(t.Context(), MemoryInput{RecordInput: RecordInput{Metadata: Metadata(`{"b":3,"c":4}`)}, Judgment: "m"})).Value
			got := getMemory(t, db, m.ID, ReadFilter{})
			if d := cmp.Diff(m, got); d != "" {
				t.Error(d)
			}
			if string(got.Metadata) != `{"a":1,"b":3,"c":4}` || got.State.Strength != 7 {
				t.Errorf("%s %v", got.Metadata, got.State)
			}
		}},
		{"M10", func(t *testing.T, db *DB) {
			s := db.Memories()
			in := func(source, tag string) MemoryInput {
				return MemoryInput{RecordInput: RecordInput{Evidence: []Evidence{{Source: source}}, Tags: []string{tag}}, Judgment: "m"}
			}
			addMemory(t, db, in("e1", "x"))
			must[*Receipt[Memory]](t)(s.UpsertByJudgment(t.Context(), in("e2", "y")))
			must[*Receipt[Memory]](t)(s.UpsertByJudgment(t.Context(), in("e1", "y")))
			m := must[*Receipt[Memory]](t)(s.UpsertByJudgment(t.Context(), MemoryInput{Judgment: "m"})).Value
			got := getMemory(t, db, m.ID, ReadFilter{Tags: []string{"x", "y"}})
			if d := cmp.Diff([]Evidence{{Source: "e1"}, {Source: "e2"}}, got.Evidence); d != "" {
				t.Error(d)
			}
		}},
		{"M11", func(t *testing.T, db *DB) {
			s := db.Memories()
			m := addMemory(t, db, MemoryInput{RecordInput: RecordInput{Scope: new("private")}, Judgment: "m"})
			before := stateOf(t, db)
			for _, id := range []ID{m.ID, 777} {
				r := must[*Receipt[bool]](t)(s.Delete(t.Context(), id, ReadFilter{}))
				if r.Value || r.Revision != before.revision {
					t.Errorf("%+v", r)
				}
			}
			r := must[*Receipt[bool]](t)(s.Delete(t.Context(), m.ID, scoped("private")))
			if !r.Value || r.Revision != before.revision+1 {
				t.Errorf("%+v", r)
			}
			if after := stateOf(t, db); after.records != 0 || after.documents != 0 {
				t.Errorf("%+v", after)
			}
			_, err := s.Get(t.Context(), m.ID, scoped("private"))
			wantCode(t, err, ErrNotFound)
		}},
		{"M12", func(t *testing.T, db *DB) {
			s := db.Memories()
			for _, scope := range []string{"public", "public", "private"} {
				addMemory(t, db, MemoryInput{RecordInput: RecordInput{Tags: []string{"旧"}, Scope: &scope}, Judgment: "m"})
			}
			req := DeleteRequest{Filter: ReadFilter{Tags: []string{"旧"}}, DryRun: true}
			revision := stateOf(t, db).revision
			for _, step := range []struct {
				dry             bool
				deleted, expect int64
			}{{true, 2, revision}, {false, 2, revision + 1}, {false, 0, revision + 1}} {
				req.DryRun = step.dry
				r := must[*Receipt[int64]](t)(s.DeleteByFilter(t.Context(), req))
				if r.Value != step.deleted || r.Revision != step.expect {
					t.Errorf("%+v, want %+v", r, step)
				}
			}
			if n := stateOf(t, db).records; n != 1 {
				t.Error(n)
			}
		}},
		{"long and many", func(t *testing.T, db *DB) {
			long := strings.Repeat("潮", MaxTextBytes/3)
			evidence := make([]Evidence, MaxEvidence)
			for i := range evidence {
				evidence[i] = Evidence{Source: fmt.Sprint("s", i), SourceRevision: "r", ChunkID: new(ID(i + 1)), Offset: new(int64(i + 1)),
					Limit: new(int64(1)), Quote: "q", Metadata: Metadata(`{"n":1.0}`)}
			}
			tags := make([]string, MaxTags)
			for i := range tags {
				tags[i] = fmt.Sprintf("t%03d", i)
			}
			in := MemoryInput{RecordInput: RecordInput{Evidence: evidence, Tags: tags, Thread: new("th"), Position: new(int64(-5))}, Judgment: long, Reasoning: long}
			m := addMemory(t, db, in)
			if d := cmp.Diff(m, getMemory(t, db, m.ID, ReadFilter{})); d != "" {
				t.Error(d)
			}
			in.ID = m.ID
			in.Evidence, in.Tags = evidence[:1], tags[:1]
			m = addMemory(t, db, in)
			if d := cmp.Diff(m, getMemory(t, db, m.ID, ReadFilter{})); d != "" {
				t.Error(d)
			}
			for _, bad := range []MemoryInput{
				{Judgment: long + long},
				{Judgment: "x\xff"},
				{Judgment: "x", Reasoning: long + long},
				{Judgment: "x", RecordInput: RecordInput{Evidence: append(slices.Clone(evidence), evidence[0])}},
				{Judgment: "x", RecordInput: RecordInput{Tags: append(slices.Clone(tags), "one more")}},
				{Judgment: "x", RecordInput: RecordInput{Tags: []string{strings.Repeat("a", MaxTagBytes+1)}}},
				{Judgment: "x", RecordInput: RecordInput{Tags: []string{"\xff"}}},
				{Judgment: "x", RecordInput: RecordInput{Position: new(int64(1))}},
				{Judgment: "x", RecordInput: RecordInput{ID: -1}},
			} {
				_, err := db.Memories().Upsert(t.Context(), bad)
				wantCode(t, err, ErrValidation)
			}
		}},
		{"threads", func(t *testing.T, db *DB) {
			in := func(thread string, position int64) MemoryInput {
				return MemoryInput{RecordInput: RecordInput{Thread: &thread, Position: &position}, Judgment: "turn"}
			}
			a := addMemory(t, db, in("talk", 1))
			addMemory(t, db, in("talk", 2))
			addMemory(t, db, in("other", 1))
			free := MemoryInput{RecordInput: RecordInput{Thread: new("talk")}, Judgment: "no position"}
			addMemory(t, db, free)
			addMemory(t, db, free)
			before := stateOf(t, db)
			_, err := db.Memories().Upsert(t.Context(), in("talk", 1))
			if e := wantCode(t, err, ErrConflict); !strings.Contains(e.Message, fmt.Sprintf("record %d", a.ID)) {
				t.Error(e.Message)
			}
			second := in("talk", 1)
			second.ID = a.ID + 1
			_, err = db.Memories().Upsert(t.Context(), second)
			wantCode(t, err, ErrConflict)
			if after := stateOf(t, db); after != before {
				t.Errorf("%+v, was %+v", after, before)
			}
			if got := listMemories(t, db, ReadFilter{Thread: new("talk")}); len(got) != 4 {
				t.Error(len(got))
			}
			if got := listMemories(t, db, ReadFilter{Thread: new("nobody")}); len(got) != 0 {
				t.Error(len(got))
			}
		}},
		{"namespace of an update", func(t *testing.T, db *DB) {
			m := addMemory(t, db, MemoryInput{RecordInput: RecordInput{Namespace: new("a")}, Judgment: "m"})
			_, err := db.Memories().Upsert(t.Context(), MemoryInput{RecordInput: RecordInput{ID: m.ID, Namespace: new("b")}, Judgment: "m"})
			wantCode(t, err, ErrNotFound)
			if m = addMemory(t, db, MemoryInput{RecordInput: RecordInput{ID: m.ID}, Judgment: "n"}); m.Namespace != "a" {
				t.Error(m.Namespace)
			}
		}},
		{"many in a batch", func(t *testing.T, db *DB) {
			ins := make([]MemoryInput, 500)
			for i := range ins {
				ins[i] = MemoryInput{Judgment: fmt.Sprint("memory ", i)}
			}
			r := must[*Receipt[[]Memory]](t)(db.Memories().UpsertMany(t.Context(), ins))
			if r.Revision != 1 || len(r.Value) != 500 || r.Value[7].Judgment != "memory 7" {
				t.Errorf("%d %d", r.Revision, len(r.Value))
			}
			r = must[*Receipt[[]Memory]](t)(db.Memories().UpsertMany(t.Context(), nil))
			if r.Revision != 1 || len(r.Value) != 0 {
				t.Errorf("%+v", r)
			}
			_, err := db.Memories().UpsertMany(t.Context(), make([]MemoryInput, MaxBatch+1))
			wantCode(t, err, ErrValidation)
			_, err = db.Memories().UpsertMany(t.Context(), []MemoryInput{{Judgment: "x"}, {RecordInput: RecordInput{ID: 9999}, Judgment: "x"}})
			if e := wantCode(t, err, ErrNotFound); e.Field != "memories[1].id" {
				t.Error(e.Field)
			}
		}},
		{"ended context", func(t *testing.T, db *DB) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			s := db.Memories()
			_, err := s.Upsert(ctx, MemoryInput{Judgment: "x"})
			wantCode(t, err, ErrCanceled)
			_, err = s.UpsertMany(ctx, []MemoryInput{{Judgment: "x"}})
			wantCode(t, err, ErrCanceled)
			_, err = s.Get(ctx, 1, ReadFilter{})
			wantCode(t, err, ErrCanceled)
			_, err = s.List(ctx, PageRequest{})
			wantCode(t, err, ErrCanceled)
			_, err = db.Health(ctx)
			wantCode(t, err, ErrCanceled)
			if n := stateOf(t, db).records; n != 0 {
				t.Error(n)
			}
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(t, openTestDB(t, t.TempDir())) })
	}
}
