package agent

import (
	"context"
	"crypto/rand"
	"os"
	"path"
	"runtime"
	"strings"
	"sync"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/link"
)

// turns are what this process keeps about the memories of a store: who may replace
// points as a whole, who may write snapshots, and what is known of the files.
type turns struct {
	mu      sync.Mutex
	held    map[turn]chan struct{}
	checked map[string]checkedFile // by path
	tidied  bool                   // what an earlier process left was removed
	files   *fileHooks             // tests have these
}

// turn is something that one call at a time may do with a memory.
type turn struct {
	namespace, scope string
	what             work
}

type work int

const (
	workPlaces work = iota // replace the points of kinds as a whole, or move them between kinds
	workFiles              // write and remove snapshots
)

// Changed implements link.Extension.
func (t *turns) Changed() {}

// Close implements link.Extension.
func (t *turns) Close() error { return nil }

func (m *AgentMemory) turns() *turns {
	made := m.link.Extension("agent", func() link.Extension {
		return &turns{held: map[turn]chan struct{}{}, checked: map[string]checkedFile{}}
	})
	return made.(*turns)
}

// take waits for the memory's turn at something; done gives it on.
func (m *AgentMemory) take(ctx context.Context, what work) (done func(), err error) {
	t := m.turns()
	t.mu.Lock()
	key := turn{m.namespace, m.scope, what}
	ch := t.held[key]
	if ch == nil {
		ch = make(chan struct{}, 1)
		t.held[key] = ch
	}
	t.mu.Unlock()
	select {
	case ch <- struct{}{}:
		leave, err := m.link.Copying(ctx)
		if err != nil {
			<-ch
			return nil, err
		}
		return func() {
			leave()
			<-ch
		}, nil
	case <-ctx.Done():
		return nil, errs.Wrap(errs.Canceled, ctx.Err(), "the context ended while another call replaced points or wrote a snapshot")
	}
}

// What lies in the data directory: a folder with snapshots for each memory, and
// while something is read from a stream, what came of it.
const (
	filesDir    = "agent"
	spoolPrefix = "~restore-" // no namespace's folder begins like that
)

// files opens the data directory. Nothing that is opened through it lies elsewhere.
func (m *AgentMemory) files() (*os.Root, error) {
	root, err := os.OpenRoot(m.link.Directory())
	return root, errs.Wrap(errs.IO, err, "the data directory could not be opened")
}

// spool makes a file for what comes from a stream. remove closes and removes it.
func (m *AgentMemory) spool() (f *os.File, remove func(), err error) {
	root, err := m.files()
	if err != nil {
		return nil, nil, err
	}
	if err = root.MkdirAll(filesDir, 0o700); err == nil {
		m.tidySpool(root)
		name := path.Join(filesDir, spoolPrefix+rand.Text()+".tmp")
		f, err = root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		remove = func() {
			// What cannot be removed now is when the store is opened next.
			_ = f.Close()
			_ = root.Remove(name)
			_ = root.Close()
		}
	}
	if err != nil {
		_ = root.Close()
		return nil, nil, errs.Wrap(errs.IO, err, "there is no place for what is to be restored")
	}
	return f, remove, nil
}

// tidySpool removes, once, what a killed process left. This process has the data
// directory to itself.
func (m *AgentMemory) tidySpool(root *os.Root) {
	t := m.turns()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tidied {
		return
	}
	t.tidied = true
	names, err := listDir(root, filesDir)
	if err != nil {
		return // as little as before
	}
	for _, name := range names {
		if strings.HasPrefix(name, spoolPrefix) {
			_ = root.Remove(path.Join(filesDir, name))
		}
	}
}

// listDir gives the names in a folder.
func listDir(root *os.Root, name string) ([]string, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	names, err := f.Readdirnames(-1)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return names, err
}

// syncDir makes what was created and renamed in a folder durable. Windows has no way
// to, and its file system needs none.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return errs.Wrap(errs.IO, err, "the folder could not be written out")
	}
	err = f.Sync()
	if closed := f.Close(); err == nil {
		err = closed
	}
	return errs.Wrap(errs.IO, err, "the folder could not be written out")
}
