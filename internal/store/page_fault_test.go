package store

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store/faultvfs"
)

// pageHistory writes revisions of a page one after the other, each with all that
// belongs to it in one operation, and goes on after one that failed.
type pageHistory struct {
	scope    *ContextScope
	page     *Page
	set      bool  // the scope and the page were acknowledged
	versions int64 // acknowledged: the page has at least these
	doubt    int   // operations that failed
	err      error
}

const pageHistoryLength = 8

func (h *pageHistory) run(s *Store) {
	h.scope = &ContextScope{Namespace: "n", Scope: `["n"]`, Version: 1, State: []byte(`{"version":1}`)}
	write := func(fn func(*WriteTx) error) bool {
		_, err := s.Write(context.Background(), fn)
		if err != nil {
			h.err = err
			h.doubt++
		}
		return err == nil
	}
	h.set = write(func(tx *WriteTx) error {
		if err := tx.AddContext(h.scope); err != nil {
			return err
		}
		h.page = testPage(h.scope, "p")
		if err := tx.AddPage(h.page); err != nil {
			return err
		}
		tx.Stage(&h.page.Record, nil)
		return tx.AppendLog(h.scope.ID, LogRender, &LogEntry{Key: "1", Body: []byte(`{}`)})
	})
	if !h.set {
		return
	}
	h.versions = 1
	for range pageHistoryLength {
		var version int64
		ok := write(func(tx *WriteTx) error {
			old, err := tx.Page(h.page.ID)
			if err != nil {
				return err
			}
			c, err := tx.ContextByID(h.scope.ID)
			if err != nil {
				return err
			}
			p := *old
			p.Version++
			version = p.Version
			p.Content = fmt.Sprintf("%08000d", version) // pages of the database that only it has
			p.Hits = version
			if err := tx.AddPageRevision(old, &p); err != nil {
				return err
			}
			tx.Stage(&p.Record, nil)
			c.Version, c.State = version, fmt.Appendf(nil, `{"version":%d}`, version)
			return errors.Join(
				tx.UpdateContext(c),
				tx.AppendLog(c.ID, LogRender, &LogEntry{Key: fmt.Sprint(version), Body: c.State}),
				tx.PutPublished(c.ID, []byte(p.Content)),
			)
		})
		if ok {
			h.versions = version
		}
	}
}

// verify reopens without faults: what was acknowledged is there, and what is
// there is of one version everywhere.
func (h *pageHistory) verify(t *testing.T, dir string) {
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
		c, err := tx.ContextOf("n", `["n"]`)
		if err != nil || c == nil {
			if h.set {
				t.Error("the scope was acknowledged and is gone", err)
			}
			return err
		}
		p, err := tx.PageByID(c.ID, "p")
		if err != nil {
			return err
		}
		if p == nil || p.Version < h.versions || p.Version > h.versions+int64(h.doubt) {
			return fmt.Errorf("acknowledged up to version %d, there is %+v", h.versions, p)
		}
		log, err := tx.LogTail(c.ID, LogRender, 100)
		if err != nil {
			return err
		}
		history, err := tx.PageHistory(p.ID)
		if err != nil {
			return err
		}
		text, ok, err := tx.PublishedText(c.ID)
		if err != nil {
			return err
		}
		state := fmt.Sprintf(`{"version":%d}`, p.Version)
		published := p.Version == 1 && !ok || string(text) == p.Content
		if c.Version != p.Version || string(c.State) != state || int64(len(log)) != p.Version || int64(len(history)) != p.Version ||
			!published || p.Version > 1 && p.Hits != p.Version {
			t.Errorf("page %d, scope %d %s, %d log entries, %d revisions, published %v", p.Version, c.Version, c.State, len(log), len(history), published)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestEveryFailureOfPages lets operation N of the file system fail, for every N.
func TestEveryFailureOfPages(t *testing.T) {
	for name, goesOn := range map[string]bool{"once": false, "from then on": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			step := int64(5)
			if testing.Short() {
				step = 151
			}
			fs := faultvfs.Register("pages-" + name)
			defer fs.Close()
			for n := int64(1); ; n += step {
				dir := t.TempDir()
				var h pageHistory
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
					if h.versions != pageHistoryLength+1 {
						t.Errorf("%d versions without a failure: %v", h.versions, h.err)
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
