package store

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// latestClock is the end of the year 9999 in UTC microseconds. A clock that shows
// more was not read from a clock, and would have everything expired.
const latestClock = 253_402_300_800_000_000

// pointRules are queries for what must not be. Each gives the number that its
// finding names.
var pointRules = [...]struct{ finds, sql string }{
	{"point %d has no row of its own", fmt.Sprintf(`SELECT r.id FROM records r LEFT JOIN points p ON p.id = r.id
		WHERE r.kind BETWEEN %d AND %d AND p.id IS NULL`, KindFact, KindProcedure)},
	{"point %d has no record", fmt.Sprintf(`SELECT p.id FROM points p LEFT JOIN records r ON r.id = p.id
		WHERE r.id IS NULL OR r.kind NOT BETWEEN %d AND %d`, KindFact, KindProcedure)},
	{"point %d lies in another place than its record", "SELECT p.id FROM points p JOIN records r ON r.id = p.id WHERE r.scope_id <> p.place"},
	// The signs keep the index that is to be checked out of it.
	{"place %d has two points of one id", "SELECT +place FROM points GROUP BY +place, +point_key HAVING count(*) > 1"},
	{"point %d has a version below 1", "SELECT id FROM points WHERE version < 1"},
	{"point %d expires before there was time", "SELECT id FROM points WHERE expires_at < 0"},
	{"point %d is valid to a time that is not behind the one that it is valid from", "SELECT id FROM points WHERE valid_to <= valid_from"},
	{"episode %d has another time than its record, or none", fmt.Sprintf(`SELECT p.id FROM points p JOIN records r ON r.id = p.id
		WHERE r.kind = %d AND p.happened_at IS NOT r.created_at`, KindEpisode)},
	{"point %d has a confidence that is not from 0 to 1", "SELECT id FROM points WHERE confidence < 0 OR confidence > 1"},
	{"point %d succeeded more often than it was used, or less than never", "SELECT id FROM points WHERE successes < 0 OR uses < successes"},

	{"a version is of point %d, which is not there", `SELECT v.point FROM point_versions v LEFT JOIN points p ON p.id = v.point
		WHERE p.id IS NULL`},
	{"point %d has an earlier version that is not below its own, or below 1", `SELECT v.point FROM point_versions v
		JOIN points p ON p.id = v.point WHERE v.version >= p.version OR v.version < 1`},
	{"point %d has a version that was believed to a time before the one from which it was", `SELECT point FROM point_versions
		WHERE recorded_to < recorded_at`},
	{"point %d has a version that was recorded before the one before it was given up", `SELECT point FROM (SELECT point, recorded_at,
		lag(recorded_to) OVER (PARTITION BY point ORDER BY version) AS before FROM point_versions) v WHERE recorded_at < before`},
	{"point %d was recorded before its last version was given up", `SELECT p.id FROM points p JOIN point_versions v ON v.point = p.id
		GROUP BY p.id, p.recorded_at HAVING max(v.recorded_to) > p.recorded_at`},
	{"point %d has a version that is valid to a time that is not behind the one that it is valid from", `SELECT point FROM point_versions
		WHERE valid_to <= valid_from`},

	{"edge %d lacks one of its ends", `SELECT e.id FROM point_edges e LEFT JOIN points s ON s.id = e.source
		LEFT JOIN points t ON t.id = e.target WHERE s.id IS NULL OR t.id IS NULL`},
	// One that is to replace another lies with its target until its place is the memory's.
	{"edge %d lies in another place than the point it goes out from", `SELECT e.id FROM point_edges e JOIN points s ON s.id = e.source
		WHERE e.place <> s.place AND NOT (e.place = e.target_place AND e.place IN (SELECT place FROM agent_places))`},
	{"edge %d does not agree with its ends on where they are", `SELECT e.id FROM point_edges e JOIN points s ON s.id = e.source
		JOIN points t ON t.id = e.target WHERE e.source_key <> s.point_key OR e.target_key <> t.point_key OR e.target_place <> t.place`},
	{"edge %d has a type that is not in the dictionary", `SELECT e.id FROM point_edges e LEFT JOIN strings s ON s.id = e.type_id
		WHERE s.id IS NULL`},
	{"point %d has two edges of one type to one point", `SELECT +source FROM point_edges
		GROUP BY +source, +type_id, +target HAVING count(*) > 1`},
	{"place %d has two edges of one id", "SELECT +place FROM point_edges GROUP BY +place, +edge_key HAVING count(*) > 1"},

	{"agent memory %d has vectors of no length", "SELECT id FROM agent_memories WHERE dimension < 1"},
	{"agent memory %d counts its snapshots below 0", "SELECT id FROM agent_memories WHERE snapshot < 0"},
	{"namespace %d has two agent memories in one scope", `SELECT +namespace_id FROM agent_memories
		GROUP BY +namespace_id, +scope_id HAVING count(*) > 1`},
	{"the clock of expiry shows %d", fmt.Sprintf("SELECT clock FROM meta WHERE clock < 0 OR clock > %d", int64(latestClock))},
}

// pointJSON are queries for what must be JSON objects, where it is anything. Each
// gives the number that its finding names, and the text.
var pointJSON = [...]struct{ finds, sql string }{
	{"the metadata of point %d cannot be read", "SELECT r.id, r.metadata FROM records r JOIN points p ON p.id = r.id WHERE r.metadata IS NOT NULL"},
	{"the data of point %d cannot be read", "SELECT id, data FROM points WHERE data IS NOT NULL"},
	{"the data of a version of point %d cannot be read", "SELECT point, data FROM point_versions WHERE data IS NOT NULL"},
	{"the metadata of a version of point %d cannot be read", "SELECT point, metadata FROM point_versions WHERE metadata IS NOT NULL"},
	{"the properties of edge %d cannot be read", "SELECT id, properties FROM point_edges WHERE properties IS NOT NULL"},
	{"the settings of agent memory %d cannot be read", "SELECT id, settings FROM agent_memories WHERE settings IS NOT NULL"},
}

// checkAgent looks at agent memory: what its tables say of each other, and where
// points lie.
func (tx *ReadTx) checkAgent() (findings []string, err error) {
	for _, rule := range pointRules {
		var found ruleFindings
		if err := tx.each(rule.sql, func(st stmt) error { found.add(rule.finds, st.columnInt(0)); return nil }); err != nil {
			return nil, err
		}
		findings = append(findings, found...)
	}
	for _, look := range pointJSON {
		var found ruleFindings
		err := tx.each(look.sql, func(st stmt) error {
			if raw := st.columnRaw(1); !json.Valid(raw) || !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) {
				found.add(look.finds, st.columnInt(0))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		findings = append(findings, found...)
	}
	found, err := tx.checkPlaces()
	return append(findings, found...), err
}

// ruleFindings are what one rule found, as far as there is room for it.
type ruleFindings []string

func (f *ruleFindings) add(format string, args ...any) {
	if len(*f) < maxFindingsOfRule {
		*f = append(*f, fmt.Sprintf(format, args...))
	}
}

// checkPlaces looks whether every place with points is one that its memory names,
// or one that is to be emptied, and whether points lie where their kind and
// namespace do.
func (tx *ReadTx) checkPlaces() (findings []string, err error) {
	var found ruleFindings
	namespaces := map[int64]int64{} // of memories
	generations := map[int64]int64{}
	scopes := map[int64]string{}
	known := map[int64]placeName{}
	// meet reads the name of a place that a table names.
	meet := func(what string, st stmt, id, place int64, name int) (placeName, bool) {
		n, ok := placeOf(st.columnText(name))
		if _, again := known[place]; again {
			found.add("%s %d names place %d, which something else names too", what, id, place)
			return n, false
		}
		known[place] = n
		if !ok {
			found.add("%s %d names place %d, whose name is that of none", what, id, place)
		}
		return n, ok
	}
	err = tx.each(`SELECT m.id, m.namespace_id, m.generation, s.text, m.fact_place, f.text, m.episode_place, e.text, m.procedure_place, p.text
		FROM agent_memories m LEFT JOIN strings s ON s.id = m.scope_id LEFT JOIN strings f ON f.id = m.fact_place
		LEFT JOIN strings e ON e.id = m.episode_place LEFT JOIN strings p ON p.id = m.procedure_place ORDER BY m.id`, func(st stmt) error {
		id, scope := st.columnInt(0), st.columnText(3)
		namespaces[id], generations[id], scopes[id] = st.columnInt(1), st.columnInt(2), scope
		for k := KindFact; k <= KindProcedure; k++ {
			at := 4 + 2*int(k-KindFact)
			place := st.columnInt(at)
			n, ok := meet("agent memory", st, id, place, at+1)
			if ok && (n.memory != id || n.kind != k || n.scope != scope || n.generation < 1 || n.generation > generations[id]) {
				found.add("agent memory %d names place %d, which by its name is not its own", id, place)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = tx.each("SELECT a.place, s.text FROM agent_places a LEFT JOIN strings s ON s.id = a.place ORDER BY a.place", func(st stmt) error {
		place := st.columnInt(0)
		n, ok := meet("the list of places to be emptied at", st, place, place, 1)
		if scope, there := scopes[n.memory]; ok && (!there || n.scope != scope || n.generation < 1 || n.generation > generations[n.memory]) {
			found.add("place %d is to be emptied, and its name is of no agent memory", place)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = tx.each("SELECT DISTINCT p.place, r.kind, r.namespace_id FROM points p JOIN records r ON r.id = p.id", func(st stmt) error {
		place, kind, namespace := st.columnInt(0), Kind(st.columnInt(1)), st.columnInt(2)
		n, ok := known[place]
		switch {
		case !ok:
			found.add("place %d has points, and no agent memory names it", place)
		case n.kind != kind:
			found.add("place %d has points of kind %d, and is for those of kind %d", place, kind, n.kind)
		case namespaces[n.memory] != namespace:
			found.add("place %d has points of namespace %d, which is not its agent memory's", place, namespace)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = tx.each(`SELECT s.place, t.place, min(e.id) FROM point_edges e JOIN points s ON s.id = e.source JOIN points t ON t.id = e.target
		GROUP BY s.place, t.place`, func(st stmt) error {
		if known[st.columnInt(0)].memory != known[st.columnInt(1)].memory {
			found.add("edge %d leads from one agent memory to another", st.columnInt(2))
		}
		return nil
	})
	return found, err
}
