package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// agentStore is a store in which there is one of everything that agent memory
// keeps: in the memory of n and s the facts 1 and 2, the episode 3 and the procedure
// 4, with versions and vectors, edges from 1 to 2 and to 3, and a place that is to
// be emptied with the fact 5; in the memory of o and s the fact 6.
func agentStore(t testing.TB, dir string, opts Options) (s *Store, m *AgentMemory) {
	t.Helper()
	s = openTest(t, dir, opts)
	m = addAgentMemory(t, s, "n", "s")
	o := addAgentMemory(t, s, "o", "s")
	a, b := testPoint(m, KindFact, 1), testPoint(m, KindFact, 2)
	a.Version, a.Recorded, b.Expires = 3, 9, new(int64(50))
	episode, procedure := testPoint(m, KindEpisode, 3), testPoint(m, KindProcedure, 4)
	addPoints(t, s, m, a, b, episode, procedure)
	addPoints(t, s, o, testPoint(o, KindFact, 6))
	sp := &Space{Name: "v", Model: "m", Dimension: 2, TextVersion: 1, Encoding: 1}
	writes(t, s, func(tx *WriteTx) error {
		old := m.Place(KindFact)
		staged, err := tx.StagePlace(m, KindFact)
		if err != nil {
			return err
		}
		m.Settings = []byte(`{}`)
		edge := func(from, to *Point, key uint64) error {
			return tx.AddPointEdge(old, &PointEdge{Source: from.ID, Type: "causes", Target: to.ID, Key: key, Created: 1, Properties: []byte(`{"w":1}`)})
		}
		return errors.Join(
			tx.AddSpace(sp), tx.PutVector(sp, &a.Record, TextOfCaller, []float32{3, 4}),
			tx.AddPointVersion(a.ID, &PointVersion{Version: 1, Recorded: 7, RecordedTo: 8, Data: []byte(`{}`), Metadata: []byte(`{}`)}, 9),
			tx.AddPointVersion(a.ID, &PointVersion{Version: 2, Recorded: 8, RecordedTo: 9}, 9),
			edge(a, b, 1), edge(a, episode, 2), tx.UpdateAgentMemory(m), tx.AddPoint(staged, testPoint(m, KindFact, 5)),
		)
	})
	return s, m
}

// TestDeepCheckPoints damages agent memory in every way that the check looks for.
func TestDeepCheckPoints(t *testing.T) {
	of := func(key uint64) string {
		return fmt.Sprintf("(SELECT id FROM points WHERE point_key = %d)", orderedKey(key))
	}
	place := func(key uint64) string {
		return fmt.Sprintf("(SELECT place FROM points WHERE point_key = %d)", orderedKey(key))
	}
	const first = "(SELECT min(id) FROM agent_memories)"
	for _, c := range []struct{ sql, says string }{
		{"DELETE FROM points WHERE id = " + of(4), "has no row of its own"},
		{"UPDATE records SET kind = 1 WHERE id = " + of(4), "point 6 has no record"},
		{"DELETE FROM records WHERE id = " + of(4), "point 6 has no record"},
		{"UPDATE records SET scope_id = 1 WHERE id = " + of(4), "lies in another place than its record"},
		{"DROP INDEX points_key; UPDATE points SET point_key = (SELECT point_key FROM points WHERE id = " + of(1) + ") WHERE id = " + of(2), "two points of one id"},
		{"UPDATE points SET version = 0 WHERE id = " + of(4), "has a version below 1"},
		{"UPDATE points SET expires_at = -1 WHERE id = " + of(4), "expires before"},
		{"UPDATE points SET valid_from = valid_to WHERE id = " + of(1), "is valid to a time"},
		{"UPDATE points SET happened_at = NULL WHERE id = " + of(3), "episode 5 has another time"},
		{"UPDATE records SET created_at = 6 WHERE id = " + of(3), "episode 5 has another time"},
		{"UPDATE points SET confidence = -0.01 WHERE id = " + of(4), "has a confidence"},
		{"UPDATE points SET confidence = 1.01 WHERE id = " + of(4), "has a confidence"},
		{"UPDATE points SET uses = 1 WHERE id = " + of(4), "succeeded more often"},
		{"UPDATE points SET successes = -1 WHERE id = " + of(4), "less than never"},

		{"UPDATE point_versions SET point = 99 WHERE version = 2", "a version is of point 99"},
		{"UPDATE point_versions SET version = 3 WHERE version = 2", "not below its own"},
		{"UPDATE point_versions SET version = 0 WHERE version = 1", "not below its own, or below 1"},
		{"UPDATE point_versions SET recorded_to = 6 WHERE version = 1", "believed to a time before"},
		{"UPDATE point_versions SET recorded_at = 7 WHERE version = 2", "recorded before the one before it"},
		{"UPDATE point_versions SET recorded_to = 10 WHERE version = 2", "recorded before its last version"},
		{"UPDATE point_versions SET valid_from = 1, valid_to = 1", "a version that is valid to a time"},

		{"UPDATE point_edges SET source = 99", "lacks one of its ends"},
		{"UPDATE point_edges SET target = 99", "lacks one of its ends"},
		{"UPDATE point_edges SET place = " + place(4), "than the point it goes out from"},
		{"UPDATE point_edges SET place = " + place(5), "than the point it goes out from"},
		{"UPDATE point_edges SET source_key = 0", "does not agree with its ends"},
		{"UPDATE point_edges SET target_key = 0", "does not agree with its ends"},
		{"UPDATE point_edges SET target_place = place", "does not agree with its ends"},
		{"UPDATE point_edges SET type_id = 99", "a type that is not in the dictionary"},
		{"DROP INDEX point_edges_triple; UPDATE point_edges SET target = " + of(2), "two edges of one type to one point"},
		{"DROP INDEX point_edges_key; UPDATE point_edges SET edge_key = 1", "has two edges of one id"},
		{"UPDATE point_edges SET target = " + of(6), "from one agent memory to another"},

		{"UPDATE agent_memories SET dimension = 0 WHERE id = " + first, "vectors of no length"},
		{"UPDATE agent_memories SET snapshot = -1 WHERE id = " + first, "counts its snapshots below 0"},
		{"DROP INDEX agent_memories_place; UPDATE agent_memories SET namespace_id = (SELECT id FROM strings WHERE text = 'n')", "two agent memories in one scope"},
		{"UPDATE meta SET clock = -1", "the clock of expiry shows -1"},
		{"UPDATE meta SET clock = 253402300800000001", "the clock of expiry shows 253402300800000001"},

		{"UPDATE records SET metadata = '{' WHERE id = " + of(1), "the metadata of point"},
		{"UPDATE points SET data = '[1]' WHERE id = " + of(4), "the data of point"},
		{"UPDATE point_versions SET data = 'x' WHERE version = 1", "the data of a version"},
		{"UPDATE point_versions SET metadata = '' WHERE version = 1", "the metadata of a version"},
		{"UPDATE point_edges SET properties = 'x'", "the properties of edge"},
		{"UPDATE agent_memories SET settings = '1' WHERE id = " + first, "the settings of agent memory"},

		{"UPDATE agent_memories SET fact_place = 1 WHERE id = " + first, "whose name is that of none"},
		{"UPDATE agent_memories SET fact_place = 99 WHERE id = " + first, "whose name is that of none"},
		{"UPDATE agent_memories SET fact_place = episode_place WHERE id = " + first, "which something else names too"},
		{"UPDATE agent_memories SET fact_place = episode_place, episode_place = fact_place WHERE id = " + first, "not its own"},
		{"UPDATE agent_memories SET fact_place = (SELECT place FROM agent_places) WHERE id = " + first, "which something else names too"},
		{"UPDATE agent_memories SET generation = 2 WHERE id = " + first, "not its own"},
		{"UPDATE agent_memories SET scope_id = (SELECT id FROM strings WHERE text = 'talk') WHERE id = " + first, "not its own"},
		{"UPDATE agent_memories SET fact_place = max(" + place(1) + ", " + place(6) + ") + min(" + place(1) + ", " + place(6) + ") - fact_place", "not its own"},
		{"UPDATE agent_places SET place = 1", "whose name is that of none"},
		{"UPDATE agent_memories SET generation = 3 WHERE id = " + first, "its name is of no agent memory"},
		{"DELETE FROM agent_memories WHERE id = " + first, "its name is of no agent memory"},
		{"DELETE FROM agent_places", "has points, and no agent memory names it"},
		{"UPDATE records SET kind = 8 WHERE id = " + of(3), "has points of kind 8, and is for those of kind 9"},
		{"UPDATE records SET namespace_id = (SELECT namespace_id FROM records WHERE id = " + of(6) + ") WHERE id = " + of(1), "not its agent memory's"},
	} {
		t.Run(c.says, func(t *testing.T) {
			dir := t.TempDir()
			s, _ := agentStore(t, dir, Options{})
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

// TestDeepCheckIsBrief names a thousand damaged points, and leaves room for the rest.
func TestDeepCheckIsBrief(t *testing.T) {
	dir := t.TempDir()
	s, m := agentStore(t, dir, Options{})
	var many []*Point
	for i := range 1000 {
		many = append(many, testPoint(m, KindProcedure, uint64(100+i)))
	}
	addPoints(t, s, m, many...)
	s.Close()
	execFile(t, filepath.Join(dir, DatabaseFile), "UPDATE points SET confidence = 2, valid_from = 1, valid_to = 1; UPDATE meta SET clock = -1")
	check, err := openTest(t, dir, Options{}).DeepCheck(t.Context())
	if err != nil || strings.Count(check.Integrity, ";") > maxFindings || !strings.Contains(check.Integrity, "clock of expiry") {
		t.Error(check, err)
	}
}

// TestMigrationToPoints opens a database as version 3 wrote it.
func TestMigrationToPoints(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, DatabaseFile)
	schema := sqliteDialect.schemaSQL(schemaText + schemaGraph + schemaNotes + schemaVectors + schemaContexts)
	execFile(t, path, "PRAGMA journal_mode=WAL; "+schema+`;
		INSERT INTO meta (one, lineage, revision, next_id, next_string, journal_floor, next_space) VALUES (1, 'abc', 3, 7, 6, 0, 2);
		INSERT INTO counts (kind, n) VALUES (1, 1), (7, 1);
		INSERT INTO strings (id, text) VALUES (1, 'default'), (2, 'public'), (3, 'knowledge'), (4, '["default"]');
		INSERT INTO records (id, kind, namespace_id, scope_id, created_at, updated_at, revision, flags)
			VALUES (4, 1, 1, 2, 5, 6, 1, 0), (6, 7, 1, 4, 5, 6, 1, 0);
		INSERT INTO memories (id, type_id, epoch, judgment_hash, pinned, strength, useful_count, useful_score, judgment, reasoning)
			VALUES (4, 3, 0, 77, 0, 1, 0, 0, 'kept', '');
		INSERT INTO context_scopes (id, namespace_id, scope_id, version, state) VALUES (5, 1, 4, 1, '{}');
		INSERT INTO pages SELECT 6, 5, 'p', 1, 4, 0, 0, 0, 0, 0, '', 0, 0, 0, 0, 0, 0, NULL, NULL;
		INSERT INTO page_versions (page_record, version, created_at, operation, importance, source, title, summary, content)
			VALUES (6, 1, 5, 'write', 0.5, '', '', '', 'text');
		INSERT INTO spaces (id, name, model, dimension, text_version, encoding) VALUES (1, 'v', 'm', 1, 1, 1);
		INSERT INTO vectors (vector_key, fingerprint, norm, value) VALUES (17592186044420, 3, 2.0, x'00000040');
		INSERT INTO index_updates (revision, part, changes) VALUES (1, 0, x'040101');
		PRAGMA application_id=`+fmt.Sprint(applicationID)+`; PRAGMA user_version=3`)
	s := openTest(t, dir, Options{})
	m := loadMemory(t, s, 4)
	if m == nil || m.Judgment != "kept" || s.Lineage() != "abc" || s.StoredClock() != 0 || s.Counters().Revision != 3 {
		t.Fatalf("%+v", m)
	}
	if got := inTruth(t, s, 1, m); !slices.Equal(got, []string{"[2] 2 3"}) {
		t.Error(got)
	}
	if p := loadPage(t, s, 6); p == nil || p.Content != "text" {
		t.Errorf("%+v", p)
	}
	memory := addAgentMemory(t, s, "default", "public")
	p := testPoint(memory, KindFact, 1)
	addPoints(t, s, memory, p)
	if memory.ID != 7 || p.ID != 8 {
		t.Error(memory.ID, p.ID)
	}
	if check, err := s.DeepCheck(t.Context()); err != nil || check != (Check{Integrity: "ok"}) {
		t.Error(check, err)
	}
	if d := cmp.Diff(schemaOf(t, s), schemaOf(t, openTest(t, t.TempDir(), Options{}))); d != "" {
		t.Error("a new database and a migrated one differ: ", d)
	}
	if _, err := os.Stat(path + ".v3"); err != nil {
		t.Error("there is no copy of the database as it was")
	}
}
