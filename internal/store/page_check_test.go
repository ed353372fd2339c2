package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/loci-memory/loci/internal/errs"
)

// contextStore is a store in which there is one of everything that the context
// store keeps. The scope has the pages "core", with two revisions, "working",
// which links to it, "copy" and "row".
func contextStore(t testing.TB, dir string, opts Options) (s *Store, c *ContextScope, pages map[string]*Page) {
	t.Helper()
	s = openTest(t, dir, opts)
	m := fullMemory()
	addBatch(t, s, []*Memory{m})
	c = addScope(t, s, "n")
	core := inCore(testPage(c, "core"), 1)
	addPages(t, s, core)
	working := inWorking(testPage(c, "working", core.ID), 1)
	copied := copyOf(testPage(c, "copy"), &m.Record)
	row := inCore(testPage(c, "row"), 2)
	row.Outline, row.RowVersion = true, 1
	addPages(t, s, working, copied, row)
	writes(t, s, func(tx *WriteTx) error {
		old := *core
		core.Version, core.Content, core.Links = 2, "new", []int64{row.ID}
		return errors.Join(
			tx.AddPageRevision(&old, core), tx.SetPolicy("n", []byte(`{}`)), tx.PutPublished(c.ID, []byte("text")),
			tx.AppendLog(c.ID, LogUsage, &LogEntry{Key: "k", Body: []byte(`{}`)}),
			tx.AppendLog(c.ID, LogUsage, &LogEntry{Key: "l", Body: []byte(`{}`)}),
			tx.AddCheckpoint(&Checkpoint{Context: c.ID, Pages: []CheckpointPage{{ID: core.ID, Version: 1}}}),
		)
	})
	return s, c, map[string]*Page{"core": core, "working": working, "copy": copied, "row": row}
}

// TestDeepCheckContexts damages the context store in every way that the check
// looks for.
func TestDeepCheckContexts(t *testing.T) {
	const core, working, row = "(SELECT id FROM pages WHERE page_id = 'core')", "(SELECT id FROM pages WHERE page_id = 'working')",
		"(SELECT id FROM pages WHERE page_id = 'row')"
	for _, c := range []struct{ sql, says string }{
		{"DELETE FROM pages WHERE page_id = 'copy'", "no row of its own"},
		{"PRAGMA foreign_keys=OFF; UPDATE records SET kind = 1 WHERE id = " + core, "no record"},
		{"UPDATE pages SET context_id = 99 WHERE page_id = 'copy'", "no scope"},
		{"UPDATE records SET scope_id = namespace_id WHERE id = " + core, "another namespace or scope"},
		{"UPDATE context_scopes SET namespace_id = scope_id", "another namespace or scope"},
		{"UPDATE pages SET version = 1 WHERE page_id = 'core'", "the last of its revisions"},
		{"UPDATE pages SET version = 3 WHERE page_id = 'core'", "the last of its revisions"},
		{"DELETE FROM page_versions WHERE page_record = " + row, "the last of its revisions"},
		{"UPDATE pages SET bytes = bytes + 1 WHERE page_id = 'core'", "another length"},
		{"DELETE FROM page_versions WHERE version = 1 AND page_record = " + core, "lacks a revision"},
		{"UPDATE page_versions SET version = 0 WHERE version = 1 AND page_record = " + core, "lacks a revision"},
		{"UPDATE pages SET tier = 3 WHERE page_id = 'copy'", "its tier does not have"},
		{"UPDATE pages SET tier = 0 WHERE page_id = 'core'", "its tier does not have"},
		{"UPDATE pages SET seq = 0 WHERE page_id = 'core'", "its tier does not have"},
		{"UPDATE pages SET admission = 0 WHERE page_id = 'working'", "its tier does not have"},
		{"UPDATE pages SET admission = 4 WHERE page_id = 'core'", "its tier does not have"},
		{"UPDATE pages SET row_version = 0 WHERE page_id = 'row'", "its tier does not have"},
		{"UPDATE pages SET outline = 0 WHERE page_id = 'row'", "its tier does not have"},
		{"UPDATE pages SET outline = 1, row_version = 1 WHERE page_id = 'working'", "its tier does not have"},
		{"UPDATE pages SET seq = 1 WHERE page_id = 'row'", "at one place in core"},
		{"DELETE FROM memories; DELETE FROM records WHERE kind = 1", "a copy of a record that is not there"},
		{"UPDATE pages SET origin_kind = 2 WHERE page_id = 'copy'", "a copy of a record that is not there"},
		{"UPDATE pages SET origin_kind = 1 WHERE page_id = 'core'", "a copy of a record that is not there"},
		{"UPDATE page_links SET target = 99 WHERE page_record = " + working, "which its scope does not have"},
		{"UPDATE page_links SET target = page_record WHERE page_record = " + working, "which its scope does not have"},
		{"INSERT INTO context_scopes VALUES (98, 1, 1, 1, '{}'); UPDATE pages SET context_id = 98 WHERE page_id = 'core'", "which its scope does not have"},
		{"DELETE FROM page_links WHERE page_record = " + working, "is not listed"},
		{"INSERT INTO page_links VALUES (" + row + ", " + working + ")", "3 links of pages are listed"},
		{"UPDATE page_versions SET links = NULL WHERE page_record = " + working, "links of pages are listed"},
		{"UPDATE page_versions SET links = x'8180' WHERE page_record = " + working, "cannot be read"},
		{"UPDATE page_versions SET tags = '[\"other\"]' WHERE page_record = " + working, "other tags"},
		{"UPDATE page_versions SET tags = NULL WHERE page_record = " + working, "other tags"},
		{"UPDATE page_versions SET tags = 'x' WHERE version = 1 AND page_record = " + core, "the tags of a revision"},
		{"UPDATE context_published SET context_id = 99", "the published text of scope 99"},
		{"UPDATE context_log SET context_id = 99", "the log of scope 99 has no scope"},
		{"UPDATE context_checkpoints SET context_id = 99", "has no scope"},
		{"DROP INDEX context_log_key; UPDATE context_log SET entry_key = 'k'", "a key twice"},
		{"UPDATE context_log SET entry_key = '' WHERE number = 1", "a key twice, or an empty one"},
		{"UPDATE context_log SET number = 0 WHERE number = 1", "an entry without a number"},
		{"UPDATE context_checkpoints SET pages = x'01'", "the pages of checkpoint"},
		{"UPDATE context_scopes SET state = '{'", "the state of scope"},
		{"UPDATE context_log SET body = 'x' WHERE number = 1", "an entry in the log"},
		{"UPDATE context_policies SET policy = ''", "the policy of namespace"},
		{fmt.Sprintf("WITH RECURSIVE n (i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "+
			"INSERT INTO pages SELECT i, context_id, i, 1, 1, 2, 1, i, 0, 1, '', 0, 0, 0, 0, 0, 0, NULL, NULL FROM n, pages WHERE page_id = 'row'", 99+maxOutline),
			"more outline rows"},
	} {
		t.Run(c.says, func(t *testing.T) {
			dir := t.TempDir()
			s, _, _ := contextStore(t, dir, Options{})
			if check, err := s.DeepCheck(t.Context()); err != nil || check != (Check{Integrity: "ok"}) {
				t.Fatalf("%+v, %v", check, err)
			}
			s.Close()
			execFile(t, filepath.Join(dir, DatabaseFile), "PRAGMA foreign_keys=OFF; "+c.sql)
			check, err := openTest(t, dir, Options{}).DeepCheck(t.Context())
			if err != nil || !strings.Contains(check.Integrity, c.says) {
				t.Errorf("%s: %v, %v", c.sql, check, err)
			}
		})
	}
}

// TestDamagedPages reads what cannot be read: an error with a code, and never
// something else.
func TestDamagedPages(t *testing.T) {
	dir := t.TempDir()
	s, c, pages := contextStore(t, dir, Options{})
	s.Close()
	execFile(t, filepath.Join(dir, DatabaseFile), "UPDATE page_versions SET tags = 'x'; UPDATE context_checkpoints SET pages = x'0101'")
	s = openTest(t, dir, Options{})
	id := pages["core"].ID
	for name, fn := range map[string]func(*ReadTx) error{
		"page":     func(tx *ReadTx) error { _, err := tx.Page(id); return err },
		"by id":    func(tx *ReadTx) error { _, err := tx.PageByID(c.ID, "core"); return err },
		"resident": func(tx *ReadTx) error { _, err := tx.ResidentPages(c.ID); return err },
		"version":  func(tx *ReadTx) error { _, err := tx.PageVersion(id, 1); return err },
		"checkpoint": func(tx *ReadTx) error {
			all, err := tx.Checkpoints(c.ID)
			if err != nil {
				t.Fatal(err)
			}
			_, err = tx.Checkpoint(c.ID, all[0].ID)
			return err
		},
	} {
		if err := s.Read(t.Context(), fn); !errors.Is(err, errs.Storage) {
			t.Error(name, err)
		}
	}
}

// FuzzCheckpoint reads what need not be a checkpoint's pages: what is read is
// what is written again.
func FuzzCheckpoint(f *testing.F) {
	whole, err := encodeCheckpoint([]CheckpointPage{
		{ID: 1, Version: 1}, {ID: 300, Version: 2, Tier: TierCore, Outline: true, Seq: 129}, {ID: 1 << 62, Tier: TierWorking, Admission: 1 << 62},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-1])
	for _, damaged := range [][]byte{nil, {0, 1, 0}, {1, 1, 3}, {1, 1, 64}, {1, 1, 8, 0}, {1, 1, 16}, {0x81, 0, 1, 0}, bytes.Repeat([]byte{0xff}, 30)} {
		f.Add(damaged)
	}
	f.Fuzz(func(t *testing.T, buf []byte) {
		pages, err := decodeCheckpoint(buf)
		if err != nil {
			if !errors.Is(err, errs.Storage) || pages != nil {
				t.Fatal(pages, err)
			}
			return
		}
		if len(pages) > len(buf)/3 {
			t.Fatal("more pages than there is room for")
		}
		again, err := encodeCheckpoint(pages)
		if err != nil || !bytes.Equal(again, buf) {
			t.Fatalf("%x became %x, %v", buf, again, err)
		}
	})
}

// TestDamagedCheckpoints names what the fuzzer may take long to find.
func TestDamagedCheckpoints(t *testing.T) {
	for _, buf := range [][]byte{
		{0, 1, 0}, {1, 1}, {1}, {1, 1, 3}, {1, 1, 64}, {1, 1, 8, 0}, {1, 1, 16}, {1, 1, 16, 0}, {0x81, 0, 1, 0}, {1, 1, 0, 0, 1, 0},
		append(bytes.Repeat([]byte{0xff}, 9), 1, 1, 0), slices.Concat(bytes.Repeat([]byte{0xff}, 8), []byte{0x7f, 1, 0, 1, 1, 0}),
	} {
		if pages, err := decodeCheckpoint(buf); !errors.Is(err, errs.Storage) {
			t.Errorf("%x: %v %v", buf, pages, err)
		}
	}
}

// schemaOf gives the statements that made what is in a store.
func schemaOf(t *testing.T, s *Store) (out []string) {
	t.Helper()
	read(t, s, func(tx *ReadTx) error {
		return tx.each("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name", func(st stmt) error {
			out = append(out, st.columnText(0))
			return nil
		})
	})
	return out
}

// TestMigrationToContexts opens a database as version 2 wrote it.
func TestMigrationToContexts(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, DatabaseFile)
	schema := sqliteDialect.schemaSQL(schemaText + schemaGraph + schemaNotes + schemaVectors)
	execFile(t, path, "PRAGMA journal_mode=WAL; "+schema+`;
		INSERT INTO meta (one, lineage, revision, next_id, next_string, journal_floor, next_space) VALUES (1, 'abc', 3, 5, 4, 0, 2);
		INSERT INTO counts (kind, n) VALUES (1, 1);
		INSERT INTO strings (id, text) VALUES (1, 'default'), (2, 'public'), (3, 'knowledge');
		INSERT INTO records (id, kind, namespace_id, scope_id, created_at, updated_at, revision, flags) VALUES (4, 1, 1, 2, 5, 6, 1, 0);
		INSERT INTO memories (id, type_id, epoch, judgment_hash, pinned, strength, useful_count, useful_score, judgment, reasoning)
			VALUES (4, 3, 0, 77, 0, 1, 0, 0, 'kept', '');
		INSERT INTO spaces (id, name, model, dimension, text_version, encoding) VALUES (1, 'v', 'm', 1, 1, 1);
		INSERT INTO vectors (vector_key, fingerprint, norm, value) VALUES (17592186044420, 3, 2.0, x'00000040');
		INSERT INTO index_updates (revision, part, changes) VALUES (1, 0, x'040101');
		PRAGMA application_id=`+fmt.Sprint(applicationID)+`; PRAGMA user_version=2`)
	s := openTest(t, dir, Options{})
	m := loadMemory(t, s, 4)
	if m == nil || m.Judgment != "kept" || s.Lineage() != "abc" {
		t.Fatalf("%+v", m)
	}
	if got := inTruth(t, s, 1, m); !slices.Equal(got, []string{"[2] 2 3"}) {
		t.Error(got)
	}
	c := addScope(t, s, "n")
	p := copyOf(testPage(c, "p"), &m.Record)
	addPages(t, s, p)
	if c.ID != 5 || p.ID != 6 {
		t.Error(c.ID, p.ID)
	}
	if check, err := s.DeepCheck(t.Context()); err != nil || check != (Check{Integrity: "ok"}) {
		t.Error(check, err)
	}
	if d := cmp.Diff(schemaOf(t, s), schemaOf(t, openTest(t, t.TempDir(), Options{}))); d != "" {
		t.Error("a new database and a migrated one differ: ", d)
	}
	if _, err := os.Stat(path + ".v2"); err != nil {
		t.Error("there is no copy of the database as it was")
	}
}

// TestPagePlans looks that no statement about pages walks a table where an
// index leads to what it wants.
func TestPagePlans(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	read(t, s, func(tx *ReadTx) error {
		for which := sqlAddContext; which <= sqlRemoveContext; which++ {
			if which == sqlContexts || which == sqlAnyCopy || strings.HasPrefix(s.texts[which], "INSERT") {
				continue
			}
			err := tx.each("EXPLAIN QUERY PLAN "+s.texts[which], func(st stmt) error {
				step := st.columnText(3)
				sorts := strings.Contains(step, "TEMP B-TREE") && which != sqlCountPages && which != sqlRecentPages
				if strings.Contains(step, "SCAN") || strings.Contains(step, "AUTOMATIC") || sorts {
					t.Errorf("%s: %s", s.texts[which], step)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}
