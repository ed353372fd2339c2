package pager

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/store"
)

// exportOf is what a store exports.
func exportOf(t testing.TB, db *loci.DB) string {
	t.Helper()
	var b bytes.Buffer
	must[*loci.ExportReport](t)(db.Export(t.Context(), &b, nil))
	return b.String()
}

// lived is a scope that had everything done to it, and its store.
func lived(t testing.TB) (*loci.DB, *Store, loci.ID) {
	t.Helper()
	db := openDB(t, t.TempDir(), nil)
	m := must[*loci.Receipt[loci.Memory]](t)(db.Memories().Upsert(t.Context(), loci.MemoryInput{
		Judgment: "Tides turn every six hours", RecordInput: loci.RecordInput{Namespace: new("project")}})).Value
	cs := scopeOf(t, db, Config{Scope: Scope{"project", "session"}, Budget: new(4000)})
	neighbour(t, cs)
	must[*PageInResult](t)(cs.PageIn(t.Context(), PageInRequest{PageID: fmt.Sprintf("memory:%d", m.ID)}))
	read := put(t, cs, WriteRequest{PageID: "edited", Content: "one"})
	put(t, cs, WriteRequest{PageID: "edited", Content: "two", ExpectedVersion: new(read.Version)})
	must[*SetPolicyResult](t)(cs.SetPolicy(t.Context(), SetPolicyRequest{EveryN: new(7)}))
	must[*Snapshot](t)(cs.Snapshot(t.Context(), SnapshotRequest{}))
	return db, cs, m.ID
}

// TestTransfer takes a scope that lived through an export and through a backup,
// into a store whose handle on it is open already: the window goes on as if
// nothing had happened.
func TestTransfer(t *testing.T) {
	db, cs, _ := lived(t)
	text := exportOf(t, db)
	want := must[*Snapshot](t)(cs.Snapshot(t.Context(), SnapshotRequest{Publish: new(false)}))
	imported := openDB(t, t.TempDir(), nil)
	cfg := Config{Scope: Scope{"project", "session"}, Budget: new(4000)}
	early := scopeOf(t, imported, cfg)
	must[*StatusResult](t)(early.Status(t.Context(), StatusRequest{}))
	if got := must[*Replacement](t)(early.ReplacementPolicy(t.Context(), ReplacementPolicyRequest{})); got.Policy.EveryN == 7 {
		t.Fatalf("%+v", got)
	}
	must[*loci.ImportReport](t)(imported.Import(t.Context(), strings.NewReader(text), nil))
	snapshot := filepath.Join(t.TempDir(), "s")
	must[*loci.BackupReport](t)(db.Backup(t.Context(), snapshot))
	clock := &testClock{}
	restored := must[*loci.DB](t)(loci.Restore(t.Context(), snapshot, filepath.Join(t.TempDir(), "r"), &loci.Options{Clock: clock.now, NoBackgroundEmbedding: true}))
	t.Cleanup(func() { restored.Close() })
	for how, at := range map[string]struct {
		db *loci.DB
		cs *Store
	}{"import": {imported, early}, "restore": {restored, scopeOf(t, restored, cfg)}} {
		got := must[*Snapshot](t)(at.cs.Snapshot(t.Context(), SnapshotRequest{Publish: new(false)}))
		if *got.Text != *want.Text || got.Generation != want.Generation || got.Epoch != want.Epoch {
			t.Errorf("%s: %+v\nwant %+v", how, got, want)
		}
		if p := must[*Replacement](t)(at.cs.ReplacementPolicy(t.Context(), ReplacementPolicyRequest{})); p.Policy.EveryN != 7 {
			t.Errorf("%s: %+v", how, p)
		}
		if h := must[*HistoryResult](t)(at.cs.History(t.Context(), HistoryRequest{PageID: "edited"})); len(h.Versions) != 2 {
			t.Errorf("%s: %+v", how, h)
		}
		if u := must[*UsageResult](t)(at.cs.Usage(t.Context(), UsageRequest{})); u.Totals.Provider.Input != 77777 {
			t.Errorf("%s: %+v", how, u)
		}
		list := must[*CheckpointsResult](t)(at.cs.Checkpoints(t.Context(), CheckpointsRequest{}))
		if len(list.Checkpoints) != 1 {
			t.Fatalf("%s: %+v", how, list)
		}
		must[*RestoreResult](t)(at.cs.Restore(t.Context(), RestoreRequest{CheckpointID: list.Checkpoints[0].CheckpointID}))
		put(t, at.cs, WriteRequest{PageID: "next", Content: "life goes on", Tier: Core})
		if h := must[*loci.HealthReport](t)(at.db.DeepHealth(t.Context())); h.Integrity != "ok" || h.Counts["page"] == 0 || h.IndexedDocuments != h.RecordCount {
			t.Errorf("%s: %+v", how, h)
		}
	}
}

// TestTransferRenumbered brings a scope into a store in use: its copies have other
// names and are as fresh as before, and the next publication says what that cost.
func TestTransferRenumbered(t *testing.T) {
	db, _, memory := lived(t)
	text := exportOf(t, db)
	other := openDB(t, t.TempDir(), nil)
	for i := range 40 {
		must[*loci.Receipt[loci.Memory]](t)(other.Memories().Upsert(t.Context(), loci.MemoryInput{Judgment: fmt.Sprint("its own ", i)}))
	}
	report := must[*loci.ImportReport](t)(other.Import(t.Context(), strings.NewReader(text), nil))
	cs := scopeOf(t, other, Config{Scope: Scope{"project", "session"}})
	name := fmt.Sprintf("memory:%d", report.IDs[memory])
	if ref := read(t, cs, name); ref.Page.Origin == nil || ref.Page.Origin.Stale || ref.Page.Origin.ID != report.IDs[memory] {
		t.Errorf("%+v", ref.Page.Origin)
	}
	if again := must[*PageInResult](t)(cs.PageIn(t.Context(), PageInRequest{PageID: name})); again.Changed {
		t.Errorf("a fresh copy was copied again: %+v", again)
	}
	s := must[*Snapshot](t)(cs.Snapshot(t.Context(), SnapshotRequest{}))
	if !strings.Contains(*s.Text, name) {
		t.Error(*s.Text)
	}
	e := must[*MetricsResult](t)(cs.Metrics(t.Context(), MetricsRequest{})).Events[0]
	if e.First || !e.PrefixIntact || e.InvalidatedBytes == 0 || e.CommonBytes == 0 {
		t.Errorf("%+v", e)
	}
	must[*loci.Receipt[bool]](t)(other.Memories().Delete(t.Context(), report.IDs[memory], loci.ReadFilter{Namespace: new("project")}))
	if s = must[*Snapshot](t)(cs.Snapshot(t.Context(), SnapshotRequest{})); strings.Contains(*s.Text, name) {
		t.Error(*s.Text)
	}
	if h := must[*loci.HealthReport](t)(other.DeepHealth(t.Context())); h.Integrity != "ok" {
		t.Errorf("%+v", h)
	}
}

// TestDamagedState holds that a state that cannot be is refused, by its field, and
// that nothing is written on top of it.
func TestDamagedState(t *testing.T) {
	db, _, _ := lived(t)
	text := exportOf(t, db)
	at := strings.Index(text, `"state":`) + len(`"state":`)
	var was map[string]any
	dec := json.NewDecoder(strings.NewReader(text[at:]))
	dec.UseNumber()
	if err := dec.Decode(&was); err != nil {
		t.Fatal(err)
	}
	end := at + int(dec.InputOffset())
	for field, value := range map[string]any{
		"tick": -1, "generation": "SECRET", "next_seq": 1, "next_admission": 0, "budget": 1, "unit": "SECRET", "tokenizer": "SECRET", "written": -1,
		"published": map[string]any{"size": 1, "stable": 2},
	} {
		changed := map[string]any{}
		for k, v := range was {
			changed[k] = v
		}
		changed[field] = value
		state := must[[]byte](t)(json.Marshal(changed))
		made := openDB(t, t.TempDir(), nil)
		must[*loci.ImportReport](t)(made.Import(t.Context(), strings.NewReader(text[:at]+string(state)+text[end:]), nil))
		_, err := Open(t.Context(), made, Config{Scope: Scope{"project", "session"}})
		if err == nil || !strings.Contains(err.Error(), field) || strings.Contains(err.Error(), "SECRET") || loci.CodeOf(err) != loci.ErrStorage {
			t.Errorf("%s: %v", field, err)
		}
		err = registryOf(made).link.Read(t.Context(), func(tx *store.ReadTx) error {
			c, err := tx.ContextOf("project", `["project","session"]`)
			if err == nil && string(c.State) != string(state) {
				t.Errorf("%s: the state was written: %s", field, c.State)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
