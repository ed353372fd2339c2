package pager

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
	"pgregory.net/rapid"
)

// TestTransferModel goes on with a random history in another store, again and
// again: what was imported is to the letter what was exported, and the model never
// notices. A store in use, which gives new ids, takes it as well.
func TestTransferModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		folder := t.TempDir()
		dir := func() string {
			name, err := os.MkdirTemp(folder, "db")
			if err != nil {
				rt.Fatal(err)
			}
			return name
		}
		budget := rapid.SampledFrom([]int{400, 1200, 3000}).Draw(rt, "budget")
		w := newWorld(rt, dir(), Config{Scope: Scope{"project", "session"}, Budget: &budget})
		defer func() {
			if w.db != nil {
				w.db.Close()
			}
		}()
		p := &player{world: w, rt: rt, budgets: []int{400, 1200, 3000}}
		actions := p.actions()
		actions["transfer"] = func(*rapid.T) { p.transfer(dir) }
		rt.Repeat(actions)
		w.close()
		w.db = nil
	})
}

// exported is what the store exports, without the header.
func (w *world) exported(db *loci.DB) (header, body string) {
	w.t.Helper()
	var b bytes.Buffer
	if _, err := db.Export(context.Background(), &b, nil); err != nil {
		w.t.Fatalf("export: %v", err)
	}
	header, body, _ = strings.Cut(b.String(), "\n")
	return header, body
}

// filled opens a store and imports into it, behind a memory of its own if it is to
// be in use.
func (w *world) filled(dir, text string, inUse bool) *loci.DB {
	w.t.Helper()
	ctx := context.Background()
	db, err := loci.Open(ctx, dir, &loci.Options{Clock: w.clock.now, WaitForIndex: true, NoBackgroundEmbedding: true})
	if err != nil {
		w.t.Fatalf("open: %v", err)
	}
	if inUse {
		if _, err := db.Memories().Upsert(ctx, loci.MemoryInput{Judgment: "its own"}); err != nil {
			w.t.Fatalf("%v", err)
		}
	}
	if _, err := db.Import(ctx, strings.NewReader(text), nil); err != nil {
		db.Close()
		w.t.Fatalf("import: %v\n%s", err, text)
	}
	h, err := db.DeepHealth(ctx)
	if err != nil || h.Integrity != "ok" || h.ForeignKeyErrors != 0 || h.IndexedDocuments != h.RecordCount {
		db.Close()
		w.t.Fatalf("the store is not sound: %+v, %v", h, err)
	}
	return db
}

// transfer takes the world to another store.
func (p *player) transfer(dir func() string) {
	p.reopenStore() // writes what was counted
	header, body := p.exported(p.db)
	p.world.close()
	same := func(db *loci.DB, body string) {
		p.t.Helper()
		if _, again := p.exported(db); again != body {
			p.t.Fatalf("not the same:\n%s\nwas\n%s", again, body)
		}
	}
	used := p.filled(dir(), header+"\n"+body, true)
	usedHeader, usedBody := p.exported(used)
	p.enter(used)
	if err := used.Close(); err != nil {
		p.t.Fatalf("close: %v", err)
	}
	again := p.filled(dir(), usedHeader+"\n"+usedBody, false)
	same(again, usedBody)
	if err := again.Close(); err != nil {
		p.t.Fatalf("close: %v", err)
	}
	p.dir = dir()
	made := p.filled(p.dir, header+"\n"+body, false)
	same(made, body)
	if err := made.Close(); err != nil {
		p.t.Fatalf("close: %v", err)
	}
	p.open(Config{Scope: p.scope})
	if !p.used() {
		p.reopenStore()
	}
	p.check("transfer", p.m)
}

// enter opens the scope in a store and looks at its window.
func (p *player) enter(db *loci.DB) {
	p.t.Helper()
	cs, err := Open(context.Background(), db, Config{Scope: p.scope, Tokenizers: findTestCounter})
	if err == nil {
		_, err = cs.Snapshot(context.Background(), SnapshotRequest{})
	}
	if err != nil {
		p.t.Fatalf("the scope in the other store: %v", err)
	}
}
