package store

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store/faultvfs"
)

// pointHistory writes one version of a fact after the other, each with all that
// belongs to it in one operation, and goes on after one that failed. In the end it
// replaces all facts by others.
type pointHistory struct {
	memory *AgentMemory
	space  *Space
	set    bool   // the memory and its points were acknowledged
	facts  uint64 // acknowledged versions of the fact
	flip   bool   // the other facts were acknowledged
	staged int64
	doubt  int64 // operations that failed
	err    error
}

const pointHistoryLength = 6

func (h *pointHistory) write(s *Store, fn func(*WriteTx) error) bool {
	_, err := s.Write(context.Background(), fn)
	if err != nil {
		h.err = err
		h.doubt++
	}
	return err == nil
}

func (h *pointHistory) run(s *Store) {
	h.memory = &AgentMemory{Namespace: "n", Scope: "s", Dimension: 2, Space: "v"}
	h.space = &Space{Name: "v", Model: "m", Dimension: 2, TextVersion: 1, Encoding: 1}
	h.set = h.write(s, func(tx *WriteTx) error {
		if err := errors.Join(tx.AddSpace(h.space), tx.AddAgentMemory(h.memory)); err != nil {
			return err
		}
		fact, episode := testPoint(h.memory, KindFact, 1), testPoint(h.memory, KindEpisode, 1)
		if err := errors.Join(tx.AddPoint(h.memory.Place(KindFact), fact), tx.AddPoint(h.memory.Place(KindEpisode), episode)); err != nil {
			return err
		}
		return tx.AddPointEdge(h.memory.Place(KindEpisode), &PointEdge{Source: episode.ID, Type: "about", Target: fact.ID, Key: 7})
	})
	if !h.set {
		return
	}
	h.facts = 1
	for range pointHistoryLength {
		var version int64
		ok := h.write(s, func(tx *WriteTx) error {
			old, err := tx.PointByKey(h.memory.Place(KindFact), 1)
			if err != nil {
				return err
			}
			p := *old
			p.Version, p.Recorded = old.Version+1, old.Recorded+1
			version = p.Version
			p.Content = fmt.Sprintf("%08000d", version) // pages of the database that only it has
			err = tx.AddPointVersion(p.ID, &PointVersion{Version: old.Version, Recorded: old.Recorded, RecordedTo: p.Recorded, Content: old.Content}, 10)
			if err != nil {
				return err
			}
			if err := tx.UpdatePoint(old, &p); err != nil {
				return err
			}
			tx.Stage(&p.Record, nil)
			return tx.PutVector(h.space, &p.Record, TextOfCaller, []float32{1, float32(version)})
		})
		if ok {
			h.facts = uint64(version)
		}
	}
	// Half of the other facts at a time; then they are the memory's.
	for half := range uint64(2) {
		if !h.write(s, func(tx *WriteTx) (err error) {
			if half == 0 {
				m := *h.memory
				if h.staged, err = tx.StagePlace(&m, KindFact); err != nil {
					return err
				}
			}
			for i := range uint64(3) {
				if err := tx.AddPoint(h.staged, testPoint(h.memory, KindFact, 10+3*half+i)); err != nil {
					return err
				}
			}
			return nil
		}) {
			return
		}
	}
	old := h.memory.Place(KindFact)
	h.flip = h.write(s, func(tx *WriteTx) error {
		m, err := tx.AgentMemory("n", "s")
		if err != nil {
			return err
		}
		return errors.Join(tx.SetPlace(m, KindFact, h.staged), tx.UpdateAgentMemory(m))
	})
	for more := h.flip; more; {
		if !h.write(s, func(tx *WriteTx) (err error) {
			more, _, err = tx.EmptyPlace(old, 1)
			return err
		}) {
			return
		}
	}
}

// verify reopens without faults: what was acknowledged is there, all of the old or
// all of the new, and the versions of the fact are of one mind.
func (h *pointHistory) verify(t *testing.T, dir string) {
	t.Helper()
	s, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal("does not open again: ", err)
	}
	defer s.Close()
	if check, err := s.DeepCheck(t.Context()); err != nil || check != (Check{Integrity: "ok"}) {
		t.Fatalf("%+v, %v", check, err)
	}
	err = s.Read(t.Context(), func(tx *ReadTx) error {
		m, err := tx.AgentMemory("n", "s")
		if err != nil || m == nil {
			if h.set {
				t.Error("the memory was acknowledged and is gone", err)
			}
			return err
		}
		facts, err := tx.PointsAfter(m.Place(KindFact), 0, nil, 100)
		if err != nil {
			return err
		}
		if len(facts) == 6 && facts[0].Key == 10 && (h.flip || h.doubt > 0) {
			return nil
		}
		if h.flip || len(facts) != 1 || facts[0].Key != 1 {
			return fmt.Errorf("acknowledged as replaced %v, there are %d", h.flip, len(facts))
		}
		p := facts[0]
		if p.Version < int64(h.facts) || p.Version > int64(h.facts)+h.doubt {
			return fmt.Errorf("acknowledged up to version %d, there is %d", h.facts, p.Version)
		}
		versions, err := tx.PointVersions(p.ID)
		if err != nil {
			return err
		}
		sp, err := tx.Space("v")
		if err != nil {
			return err
		}
		v, _, ok, err := tx.Vector(sp.ID, p.ID, nil)
		if int64(len(versions)) != p.Version-1 || p.Version > 1 && (p.Content != fmt.Sprintf("%08000d", p.Version) || !ok || v[1] != float32(p.Version)) {
			t.Errorf("version %d, %d before it, vector %v", p.Version, len(versions), v)
		}
		edges, errEdges := tx.PointEdgesTo(p.ID)
		if len(edges) != 1 || edges[0].Key != 7 {
			t.Error("the edge is gone")
		}
		return errors.Join(err, errEdges)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestEveryFailureOfPoints lets operation N of the file system fail, for every N.
func TestEveryFailureOfPoints(t *testing.T) {
	for name, goesOn := range map[string]bool{"once": false, "from then on": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			step := int64(7)
			if testing.Short() {
				step = 151
			}
			fs := faultvfs.Register("points-" + name)
			defer fs.Close()
			for n := int64(1); ; n += step {
				dir := t.TempDir()
				var h pointHistory
				fs.FailAt(n, faultvfs.Any, faultvfs.ErrIO, goesOn)
				s, err := Open(t.Context(), dir, Options{VFS: fs.Name(), CheckpointPages: 8})
				if err == nil {
					h.run(s)
					s.Close()
				}
				for _, err := range []error{err, h.err} {
					if err != nil && errs.CodeOf(err) == "" {
						t.Errorf("no code on %v", err)
					}
				}
				failed := fs.Failed()
				fs.FailAt(0, 0, nil, false)
				h.verify(t, dir)
				if !failed {
					if h.facts != pointHistoryLength+1 || !h.flip {
						t.Errorf("%d versions without a failure, replaced %v: %v", h.facts, h.flip, h.err)
					}
					t.Logf("%d places to fail", n-1)
					return
				}
				if t.Failed() {
					return
				}
			}
		})
	}
}

// TestEveryReadOfPointsFails lets every look at the file fail in turn: no function
// that reads points swallows an error, or gives half of an answer.
func TestEveryReadOfPointsFails(t *testing.T) {
	dir := t.TempDir()
	s, m := agentStore(t, dir, Options{})
	var id int64
	read(t, s, func(tx *ReadTx) error {
		p, err := tx.PointByKey(m.Place(KindFact), 1)
		id = p.ID
		return err
	})
	s.Close()
	fs := faultvfs.Register("point-reads")
	defer fs.Close()
	facts := m.Place(KindFact)
	for name, fn := range map[string]func(tx *ReadTx) (int, error){
		"point":   func(tx *ReadTx) (int, error) { p, err := tx.Point(id); return some(p), err },
		"by key":  func(tx *ReadTx) (int, error) { p, err := tx.PointByKey(facts, 1); return some(p), err },
		"after":   func(tx *ReadTx) (int, error) { p, err := tx.PointsAfter(facts, 0, nil, 10); return len(p), err },
		"from":    func(tx *ReadTx) (int, error) { p, err := tx.PointsFrom(facts, 0, 10); return len(p), err },
		"expired": func(tx *ReadTx) (int, error) { p, err := tx.ExpiredPoints(60, 10); return len(p), err },
		"below": func(tx *ReadTx) (int, error) {
			p, err := tx.PointsBelow(m.Place(KindProcedure), 1, 10)
			return len(p), err
		},
		"recent": func(tx *ReadTx) (int, error) {
			p, err := tx.RecentPoints(m.Place(KindEpisode), 0, 0, 10)
			return len(p), err
		},
		"between": func(tx *ReadTx) (int, error) {
			p, err := tx.PointsBetween(m.Place(KindEpisode), 0, 0, 9, nil, 10)
			return len(p), err
		},
		"count":       func(tx *ReadTx) (int, error) { n, err := tx.CountPoints(facts, 0); return int(n), err },
		"versions":    func(tx *ReadTx) (int, error) { v, err := tx.PointVersions(id); return len(v), err },
		"edges":       func(tx *ReadTx) (int, error) { e, err := tx.PointEdgesFrom(id); return len(e), err },
		"edges to":    func(tx *ReadTx) (int, error) { e, err := tx.PointEdgesTo(id + 1); return len(e), err },
		"edges in":    func(tx *ReadTx) (int, error) { e, err := tx.PointEdgesIn(facts, nil, 10); return len(e), err },
		"edge by key": func(tx *ReadTx) (int, error) { e, err := tx.PointEdgeByKey(facts, 1); return some(e), err },
		"memory":      func(tx *ReadTx) (int, error) { m, err := tx.AgentMemory("n", "s"); return some(m), err },
		"memories":    func(tx *ReadTx) (int, error) { m, err := tx.AgentMemories(); return len(m), err },
		"empty":       func(tx *ReadTx) (int, error) { p, err := tx.EmptyPlaces(); return len(p), err },
		"expiry":      func(tx *ReadTx) (int, error) { at, _, err := tx.NextExpiry(); return int(at), err },
		"free key":    func(tx *ReadTx) (int, error) { key, err := tx.FreePointKey(facts, 0); return int(key), err },
	} {
		t.Run(name, func(t *testing.T) {
			want := 0
			for n := int64(0); ; n++ { // 0: nothing fails
				s := openTest(t, dir, Options{VFS: fs.Name()})
				if n > 0 {
					fs.FailAt(n, faultvfs.Any, faultvfs.ErrIO, true)
				}
				got := 0
				err := s.Read(t.Context(), func(tx *ReadTx) (err error) {
					got, err = fn(tx)
					return err
				})
				failed := n > 0 && fs.Failed()
				fs.FailAt(0, 0, nil, false)
				s.Close()
				switch {
				case n == 0:
					if want = got; err != nil || want == 0 {
						t.Fatal(got, err)
					}
				case err != nil && (errs.CodeOf(err) == "" || got != 0):
					t.Fatalf("failure %d: %d, %v", n, got, err)
				case err == nil && got != want:
					t.Fatalf("failure %d: no error, and %d of %d", n, got, want)
				}
				if n > 0 && !failed {
					return
				}
			}
		})
	}
}

func some[T any](p *T) int {
	if p == nil {
		return 0
	}
	return 1
}
