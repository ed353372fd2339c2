package loci

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// model is what the memory store should do, in the simplest way.
type model struct {
	memories map[ID]Memory
	lastID   ID
	revision int64
}

func (m *model) covered(f ReadFilter) []ID {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(m.memories)), func(id ID) bool {
		x := m.memories[id]
		namespace, scopes := valueOr(f.Namespace, DefaultNamespace), f.Scopes
		if scopes == nil {
			scopes = []string{PublicScope}
		}
		for _, tag := range f.Tags {
			if !slices.Contains(x.Tags, tag) {
				return true
			}
		}
		return x.Namespace != namespace || !slices.Contains(scopes, x.Scope) || f.Thread != nil && x.Thread != *f.Thread ||
			f.CreatedFromUS != nil && x.CreatedAtUS < *f.CreatedFromUS || f.CreatedToUS != nil && x.CreatedAtUS >= *f.CreatedToUS
	})
}

// put applies an upsert and says which code it should fail with.
func (m *model) put(in MemoryInput, now int64) (Memory, Code) {
	x := Memory{MemoryType: valueOr(in.MemoryType, DefaultMemoryType), Judgment: in.Judgment, Reasoning: in.Reasoning}
	x.Namespace, x.Scope = valueOr(in.Namespace, DefaultNamespace), valueOr(in.Scope, PublicScope)
	x.CreatedAtUS, x.State = valueOr(in.CreatedAtUS, now), MemoryState{Strength: 1}
	if in.ID != 0 {
		old, ok := m.memories[in.ID]
		if !ok || in.Namespace != nil && *in.Namespace != old.Namespace {
			return x, ErrNotFound
		}
		if in.ExpectedRevision != nil && *in.ExpectedRevision != old.Revision {
			return x, ErrStaleRevision
		}
		x.ID, x.Namespace, x.Scope, x.CreatedAtUS, x.State = old.ID, old.Namespace, valueOr(in.Scope, old.Scope), old.CreatedAtUS, old.State
	} else if in.ExpectedRevision != nil {
		return x, ErrStaleRevision
	}
	if in.State != nil {
		x.State = *in.State
	}
	x.UpdatedAtUS = max(now, x.CreatedAtUS)
	x.Tags, x.Evidence, x.Metadata = in.Tags, in.Evidence, in.Metadata
	x.Thread, x.Position = valueOr(in.Thread, ""), in.Position
	return m.place(x)
}

func (m *model) place(x Memory) (Memory, Code) {
	for _, other := range m.memories {
		if other.ID != x.ID && x.Position != nil && other.Position != nil && *x.Position == *other.Position &&
			x.Thread == other.Thread && x.Scope == other.Scope && x.Namespace == other.Namespace {
			return x, ErrConflict
		}
	}
	if x.ID == 0 {
		m.lastID++
		x.ID = m.lastID
	}
	m.revision++
	x.Revision = m.revision
	m.memories[x.ID] = x
	return x, ""
}

func (m *model) putByJudgment(in MemoryInput, now int64) (Memory, Code) {
	var same []Memory
	for _, x := range m.memories {
		if x.Namespace == valueOr(in.Namespace, DefaultNamespace) && x.Scope == valueOr(in.Scope, PublicScope) && x.Judgment == in.Judgment {
			same = append(same, x)
		}
	}
	switch {
	case len(same) > 1:
		return Memory{}, ErrConflict
	case len(same) == 0:
		return m.put(in, now)
	}
	x := same[0]
	x.UpdatedAtUS = max(now, x.CreatedAtUS)
	x.MemoryType = valueOr(in.MemoryType, x.MemoryType)
	if in.Reasoning != "" {
		x.Reasoning = in.Reasoning
	}
	if in.State != nil {
		x.State = *in.State
	}
	if in.Thread != nil {
		x.Thread, x.Position = *in.Thread, in.Position
	}
	x.Tags = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(x.Tags), in.Tags...))))
	x.Evidence = slices.Clone(x.Evidence)
	for _, e := range in.Evidence {
		if !slices.ContainsFunc(x.Evidence, func(o Evidence) bool { return o.Source == e.Source }) {
			x.Evidence = append(x.Evidence, e)
		}
	}
	return m.place(x)
}

func TestModel(t *testing.T) {
	names := rapid.SampledFrom([]string{"a", "b", "c"})
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "db")
		if err != nil {
			rt.Fatal(err)
		}
		now := int64(1000)
		clock := newTestClock()
		open := func() *DB {
			db, err := Open(t.Context(), dir, &Options{Clock: clock.Now, WaitForIndex: true})
			if err != nil {
				rt.Fatal(err)
			}
			return db
		}
		clock.Set(now)
		db := open()
		defer func() { db.Close() }()
		m := &model{memories: map[ID]Memory{}}
		compare := func(id ID, got Memory) {
			if d := cmp.Diff(m.memories[id], got, cmpopts.EquateEmpty()); d != "" {
				rt.Fatalf("memory %d: %s", id, d)
			}
		}
		checkCode := func(err error, want Code) bool {
			if CodeOf(err) != want {
				rt.Fatalf("error %v, want %q", err, want)
			}
			return err == nil
		}
		optional := func(label string) *string {
			if rapid.Bool().Draw(rt, "has "+label) {
				return new(names.Draw(rt, label))
			}
			return nil
		}
		// Few of these differ, so that records meet.
		rarely := func(label string) *string {
			if rapid.IntRange(0, 7).Draw(rt, label) == 7 {
				return new("a")
			}
			return nil
		}
		someID := func() ID { return ID(rapid.Int64Range(1, int64(m.lastID)+2).Draw(rt, "id")) }
		filter := func() ReadFilter {
			f := ReadFilter{Namespace: rarely("namespace"), Thread: rarely("thread")}
			if rapid.Bool().Draw(rt, "has scopes") {
				f.Scopes = append(rapid.SliceOfN(names, 0, 2).Draw(rt, "scopes"), PublicScope)
			}
			f.Tags = rapid.SliceOfN(names, 0, 2).Draw(rt, "tags")
			if rapid.Bool().Draw(rt, "has window") {
				f.CreatedFromUS = new(rapid.Int64Range(0, now+10).Draw(rt, "from"))
				f.CreatedToUS = new(*f.CreatedFromUS + rapid.Int64Range(0, now).Draw(rt, "length"))
			}
			return f
		}
		// An empty list is refused where something changes, which "delete by filter" holds.
		changing := func() ReadFilter {
			f := filter()
			if len(f.Tags) == 0 {
				f.Tags = nil
			}
			return f
		}
		input := func() MemoryInput {
			in := MemoryInput{
				RecordInput: RecordInput{Namespace: rarely("namespace"), Scope: rarely("scope")},
				MemoryType:  optional("type"), Judgment: names.Draw(rt, "judgment"), Reasoning: rapid.SampledFrom([]string{"", "r", "s"}).Draw(rt, "reasoning"),
			}
			in.Tags = slices.Compact(slices.Sorted(slices.Values(rapid.SliceOfN(names, 0, 3).Draw(rt, "tags"))))
			for _, source := range rapid.SliceOfNDistinct(names, 0, 2, rapid.ID).Draw(rt, "evidence") {
				in.Evidence = append(in.Evidence, Evidence{Source: source})
			}
			if in.Thread = optional("thread"); in.Thread != nil && rapid.Bool().Draw(rt, "has position") {
				in.Position = new(rapid.Int64Range(0, 2).Draw(rt, "position"))
			}
			if rapid.Bool().Draw(rt, "has state") {
				in.State = &MemoryState{Strength: 3, UsefulScore: rapid.SampledFrom([]float64{0, 5, 20}).Draw(rt, "score")}
			}
			return in
		}
		rt.Repeat(map[string]func(*rapid.T){
			"upsert": func(*rapid.T) {
				in := input()
				if rapid.Bool().Draw(rt, "update") {
					in.ID = someID()
					if rapid.IntRange(0, 3).Draw(rt, "expect") == 0 {
						in.ExpectedRevision = new(rapid.Int64Range(0, m.revision).Draw(rt, "revision"))
					}
				}
				want, code := m.put(in, now)
				r, err := db.Memories().Upsert(t.Context(), in)
				if checkCode(err, code) {
					compare(want.ID, r.Value)
				}
			},
			"by judgment": func(*rapid.T) {
				in := input()
				want, code := m.putByJudgment(in, now)
				r, err := db.Memories().UpsertByJudgment(t.Context(), in)
				if checkCode(err, code) {
					compare(want.ID, r.Value)
				}
			},
			"delete": func(*rapid.T) {
				id, f := someID(), changing()
				want := slices.Contains(m.covered(f), id)
				r, err := db.Memories().Delete(t.Context(), id, f)
				if checkCode(err, "") && r.Value != want {
					rt.Fatal(r.Value)
				}
				if want {
					delete(m.memories, id)
					m.revision++
				}
			},
			"delete by filter": func(*rapid.T) {
				f, dry := filter(), rapid.Bool().Draw(rt, "dry")
				want := m.covered(f)
				refused := Code("")
				if f.Tags != nil && len(f.Tags) == 0 { // as if none of them were meant
					refused = ErrValidation
				}
				r, err := db.Memories().DeleteByFilter(t.Context(), DeleteRequest{Filter: f, DryRun: dry})
				if !checkCode(err, refused) {
					return
				}
				if r.Value != int64(len(want)) {
					rt.Fatal(r.Value, want)
				}
				if !dry && len(want) > 0 {
					for _, id := range want {
						delete(m.memories, id)
					}
					m.revision++
				}
			},
			"feedback": func(*rapid.T) {
				f := changing()
				ids := m.covered(f)
				if len(ids) == 0 {
					return
				}
				_, err := db.Memories().Feedback(t.Context(), FeedbackRequest{Filter: f, RecalledIDs: ids, UsefulIDs: ids, NowUS: &now})
				checkCode(err, "")
				m.revision++
				for _, id := range ids {
					x := m.memories[id]
					x.State.Strength++
					x.State.UsefulScore += 2.5
					x.State.UsefulCount++
					x.State.LastRecalledAtUS = new(now)
					x.Revision = m.revision
					m.memories[id] = x
				}
			},
			"time": func(*rapid.T) {
				now += rapid.Int64Range(1, 1000).Draw(rt, "step")
				clock.Set(now)
			},
			"reopen": func(*rapid.T) {
				if err := db.Close(); err != nil {
					rt.Fatal(err)
				}
				db = open()
			},
			"": func(*rapid.T) {
				f := filter()
				req, want := PageRequest{Filter: f, Limit: new(rapid.IntRange(1, 5).Draw(rt, "limit"))}, m.covered(f)
				var got []ID
				for {
					page, err := db.Memories().List(t.Context(), req)
					checkCode(err, "")
					for _, x := range page.Items {
						compare(x.ID, x)
						got = append(got, x.ID)
					}
					if req.After = page.NextCursor; req.After == 0 {
						break
					}
				}
				if !slices.Equal(got, want) {
					rt.Fatalf("listed %v, want %v", got, want)
				}
				h, err := db.Health(t.Context())
				checkCode(err, "")
				if h.Revision != m.revision || h.RecordCount != int64(len(m.memories)) || h.IndexedDocuments != h.RecordCount || h.PendingIndexUpdates != 0 {
					rt.Fatalf("%+v, want revision %d and %d records", h, m.revision, len(m.memories))
				}
			},
		})
		if check, err := db.eng.store.DeepCheck(t.Context()); err != nil || fmt.Sprint(check) != "{ok 0}" {
			rt.Fatal(check, err)
		}
	})
}
