package foreign

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
)

// Row is a row of a foreign database. Columns count from 0; those of another type
// are converted as SQLite does.
type Row interface {
	Int(column int) int64
	Text(column int) string
	Null(column int) bool
}

// Rows gives the rows of a query one by one.
type Rows func(query string, f func(Row) error) error

// The database of p-memory: what marks it, and the one layout that is known.
const (
	pmApplication = 1346455885
	pmVersion     = 15 // 0.3.x
)

// The kinds of its records.
const (
	pmMemory = iota
	pmEntity
	pmRelation
	pmEvent
	pmNote
	pmChunk
)

// ReadPMemory reads a store of p-memory 0.3. Namespaces and scopes are its own,
// and so are times, strengths and pins. Vectors stay behind: they are made anew.
func ReadPMemory(file string, rows Rows) (*Plan, error) {
	r := &pmReader{p: newPlan(file), rows: rows}
	for _, step := range []func() error{
		r.check, r.strings, r.tagLists, r.roots, r.notePaths, r.records, r.rules, r.equivalents, r.rest,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return r.p.finish(), nil
}

// pmReader is one store under way.
type pmReader struct {
	p    *Plan
	rows Rows

	words map[int64]string
	tags  map[int64][]string
	root  map[int64]string // by namespace
	paths map[int64]string // of notes

	names  map[string]int // how many entities have a name and type in a place
	places map[int64]bool // entities that are there
}

func (r *pmReader) check() error {
	var application, version int64
	err := r.rows("SELECT a.application_id, v.user_version FROM pragma_application_id a, pragma_user_version v", func(row Row) error {
		application, version = row.Int(0), row.Int(1)
		return nil
	})
	switch {
	case err != nil:
		return err
	case application != pmApplication:
		return errs.Invalid("path", "is an SQLite database, but none of p-memory")
	case version != pmVersion:
		return errs.Invalid("path", "has the layout %d of p-memory; %d, that of 0.3, is the one that is known: open it with p-memory 0.3.4 first", version, pmVersion)
	}
	return nil
}

func (r *pmReader) strings() error {
	r.words = map[int64]string{}
	return r.rows("SELECT id, text FROM strings", func(row Row) error {
		r.words[row.Int(0)] = row.Text(1)
		return nil
	})
}

func (r *pmReader) tagLists() error {
	r.tags = map[int64][]string{}
	return r.rows("SELECT record_id, tag_id FROM record_tags ORDER BY record_id, tag_id", func(row Row) error {
		if t, ok := r.words[row.Int(1)]; ok {
			r.tags[row.Int(0)] = append(r.tags[row.Int(0)], t)
		}
		return nil
	})
}

func (r *pmReader) roots() error {
	r.root = map[int64]string{}
	return r.rows("SELECT namespace_id, root FROM namespace_roots ORDER BY namespace_id", func(row Row) error {
		namespace := r.words[row.Int(0)]
		r.root[row.Int(0)] = row.Text(1)
		r.p.Settings = append(r.p.Settings, Setting{
			Where: fmt.Sprintf("%s:note root of %s", r.p.File, namespace), Namespace: &namespace, Root: row.Text(1),
		})
		return nil
	})
}

func (r *pmReader) notePaths() error {
	r.paths = map[int64]string{}
	return r.rows("SELECT record_id, path FROM notes", func(row Row) error {
		r.paths[row.Int(0)] = row.Text(1)
		return nil
	})
}

// pmPayload is what p-memory keeps of a record as JSON.
type pmPayload struct {
	Judgment     string              `json:"judgment"`
	MemoryTypeID int64               `json:"memory_type_id"`
	Reasoning    string              `json:"reasoning"`
	State        *pmState            `json:"state"`
	Name         string              `json:"name"`
	EntityType   string              `json:"entity_type"`
	Aliases      []string            `json:"aliases"`
	Attributes   map[string][]string `json:"attributes"`
	Summary      string              `json:"summary"`
	SubjectID    int64               `json:"subject_id"`
	ObjectID     int64               `json:"object_id"`
	Predicate    string              `json:"predicate"`
	Participants []int64             `json:"participants"`
	Confidence   *float64            `json:"confidence"`
	Reason       string              `json:"reason"`
	ChunkChars   int                 `json:"chunk_chars"`
}

type pmState struct {
	Pinned         bool    `json:"pinned"`
	Strength       float64 `json:"strength"`
	UsefulCount    int64   `json:"useful_count"`
	UsefulScore    float64 `json:"useful_score"`
	LastRecalledAt *int64  `json:"last_recalled_at_us"`
	LastDecayAt    *int64  `json:"last_decay_at_us"`
}

// pmEvidence has null where ours has nothing.
type pmEvidence struct {
	Source         string          `json:"source"`
	SourceRevision *string         `json:"source_revision"`
	Offset         *int64          `json:"offset"`
	Limit          *int64          `json:"limit"`
	Quote          string          `json:"quote"`
	Metadata       json.RawMessage `json:"metadata"`
}

func (r *pmReader) records() error {
	// Entities of one name and type are several here, and only their ids tell them
	// apart.
	r.names, r.places = map[string]int{}, map[int64]bool{}
	err := r.rows("SELECT r.id, r.namespace_id, r.scope_id, e.name, e.entity_type_id FROM records r JOIN entities e ON e.record_id = r.id WHERE r.status = 0",
		func(row Row) error {
			r.places[row.Int(0)] = true
			r.names[r.nameKey(row.Int(1), row.Int(2), row.Text(3), r.words[row.Int(4)])]++
			return nil
		})
	if err != nil {
		return err
	}
	const query = "SELECT id, namespace_id, kind, scope_id, created_at_us, updated_at_us, metadata_json, evidence_json, payload_json, status FROM records ORDER BY id"
	return r.rows(query, func(row Row) error {
		if row.Int(2) == pmChunk {
			return nil // made of its note
		}
		if err := r.p.count(); err != nil {
			return err
		}
		return r.record(row)
	})
}

func (r *pmReader) nameKey(namespace, scope int64, name, kind string) string {
	return fmt.Sprintf("%d %d %q %q", namespace, scope, strings.ToLower(name), kind)
}

func pmKind(kind int64) string {
	switch kind {
	case pmMemory:
		return "memory"
	case pmEntity:
		return "entity"
	case pmRelation:
		return "relation"
	case pmEvent:
		return "event"
	case pmNote:
		return "note"
	}
	return fmt.Sprintf("kind %d", kind)
}

func (r *pmReader) record(row Row) error {
	id, kind := row.Int(0), pmKind(row.Int(2))
	where := fmt.Sprintf("%s:record %d", r.p.File, id)
	if status := row.Int(9); status != 0 {
		r.p.Leave(where, kind, "status", "is %d, and only live records are taken", status)
		return nil
	}
	namespace, scope := r.words[row.Int(1)], r.words[row.Int(3)]
	if namespace == "" || scope == "" {
		r.p.Leave(where, kind, "", "lies in a namespace or scope that has no name")
		return nil
	}
	var d pmPayload
	if err := json.Unmarshal([]byte(row.Text(8)), &d); err != nil {
		r.p.Leave(where, kind, "payload_json", "%s", syntax(err))
		return nil
	}
	r.p.Namespaces = append(r.p.Namespaces, namespace)
	if len(r.p.Namespaces) > 1<<10 {
		slices.Sort(r.p.Namespaces)
		r.p.Namespaces = slices.Compact(r.p.Namespaces)
	}
	head := loci.RecordInput{Namespace: &namespace, Scope: &scope, Tags: r.p.tags(where, kind, r.tags[id])}
	if at := row.Int(4); at >= 0 {
		head.CreatedAtUS = &at
		if updated := row.Int(5); updated >= at {
			head.UpdatedAtUS = &updated
		}
	}
	if m := strings.TrimSpace(row.Text(6)); m != "" && m != "{}" && m != "null" {
		head.Metadata = loci.Metadata(m)
	}
	head.Evidence = r.evidence(where, kind, id, row.Text(7))
	switch row.Int(2) {
	case pmMemory:
		r.memory(where, id, head, &d)
	case pmEntity:
		r.entity(where, id, row.Int(1), row.Int(3), head, &d)
	case pmRelation:
		if r.ends(where, kind, d.SubjectID, d.ObjectID) {
			r.p.Relations = append(r.p.Relations, Relation{
				Where: where, Subject: pmKey(d.SubjectID), Object: pmKey(d.ObjectID),
				Input: loci.RelationInput{RecordInput: head, Predicate: d.Predicate, Confidence: d.Confidence, Reason: clean(d.Reason)},
			})
		}
	case pmEvent:
		if !r.ends(where, kind, d.Participants...) {
			return nil
		}
		e := Event{Where: where, Input: loci.EventInput{
			RecordInput: head, Name: d.Name, Summary: clean(d.Summary), Confidence: d.Confidence, Reason: clean(d.Reason),
		}}
		for _, one := range d.Participants {
			e.Participants = append(e.Participants, pmKey(one))
		}
		r.p.Events = append(r.p.Events, e)
	case pmNote:
		r.note(where, id, row.Int(1), head, &d)
	default:
		r.p.Leave(where, kind, "kind", "is none that is known")
	}
	return nil
}

func pmKey(id int64) string { return fmt.Sprint(id) }

// ends says whether all entities that a record names are there.
func (r *pmReader) ends(where, kind string, ids ...int64) bool {
	for _, id := range ids {
		if !r.places[id] {
			r.p.Leave(where, kind, "", "refers to entity %d, which is not there", id)
			return false
		}
	}
	return true
}

// evidence is the record's own, and where it comes from now.
func (r *pmReader) evidence(where, kind string, id int64, raw string) []loci.Evidence {
	var own []pmEvidence
	if raw = strings.TrimSpace(raw); raw != "" && raw != "null" {
		if err := json.Unmarshal([]byte(raw), &own); err != nil {
			r.p.Leave(where, kind+" evidence", "evidence_json", "%s; the record is taken without it", syntax(err))
		}
	}
	var out []loci.Evidence
	for i, e := range own {
		if len(out) == loci.MaxEvidence-8 {
			r.p.Leave(where, kind+" evidence", "evidence_json", "has %d pieces, of which the first %d are taken", len(own), len(out))
			break
		}
		if strings.TrimSpace(e.Source) == "" {
			r.p.Leave(where, kind+" evidence", fmt.Sprintf("evidence[%d].source", i), "is empty; the record is taken without it")
			continue
		}
		one := loci.Evidence{Source: e.Source, SourceRevision: valueOr(e.SourceRevision), Quote: e.Quote}
		if e.Offset != nil && e.Limit != nil && *e.Offset > 0 && *e.Limit > 0 {
			one.Offset, one.Limit = e.Offset, e.Limit
		}
		if m := string(e.Metadata); m != "" && m != "null" && m != "{}" {
			one.Metadata = loci.Metadata(e.Metadata)
		}
		out = append(out, one)
	}
	return append(out, loci.Evidence{Source: string(PMemory) + ":" + r.p.File + "#" + fmt.Sprint(id)})
}

func (r *pmReader) memory(where string, id int64, head loci.RecordInput, d *pmPayload) {
	text, ok := r.p.text(where, "memory", "judgment", d.Judgment)
	if !ok {
		return
	}
	in := loci.MemoryInput{RecordInput: head, Judgment: text, Reasoning: clean(d.Reasoning)}
	if kind := r.words[d.MemoryTypeID]; kind != "" {
		in.MemoryType = &kind
	}
	if s := d.State; s != nil {
		in.State = &loci.MemoryState{
			Pinned: s.Pinned, Strength: s.Strength, UsefulCount: s.UsefulCount, UsefulScore: s.UsefulScore,
			LastRecalledAtUS: s.LastRecalledAt, LastDecayAtUS: s.LastDecayAt,
		}
	}
	r.p.Memories = append(r.p.Memories, Memory{Where: where, Key: r.key(id, head.CreatedAtUS), Input: in})
}

// key names a record for ever: ids alone are the same in every store.
func (r *pmReader) key(id int64, created *int64) string {
	at := int64(0)
	if created != nil {
		at = *created
	}
	return fmt.Sprintf("%s:%d@%d", PMemory, id, at)
}

func (r *pmReader) entity(where string, id, namespace, scope int64, head loci.RecordInput, d *pmPayload) {
	kind := d.EntityType
	if kind == "" {
		kind = loci.DefaultEntityType
	}
	e := Entity{Where: where, Key: pmKey(id), Input: loci.EntityInput{
		RecordInput: head, Name: d.Name, EntityType: &kind, Aliases: d.Aliases, Attributes: maps.Clone(d.Attributes), Summary: clean(d.Summary),
	}}
	if r.names[r.nameKey(namespace, scope, d.Name, kind)] > 1 {
		e.Exact = true
		e.Input.Metadata = WithKey(head.Metadata, r.key(id, head.CreatedAtUS), "")
	} else {
		e.Input.Match = loci.MatchByName
	}
	r.p.Entities = append(r.p.Entities, e)
}

func (r *pmReader) note(where string, id, namespace int64, head loci.RecordInput, d *pmPayload) {
	file, root := r.paths[id], r.root[namespace]
	if file == "" || root == "" {
		r.p.Leave(where, "note", "path", "has no file, or its namespace no folder for notes")
		return
	}
	in := loci.NoteFileInput{RecordInput: head, Path: file}
	in.Evidence = in.Evidence[:len(in.Evidence)-1] // a note is its file
	if n := d.ChunkChars; n >= loci.MinChunkChars && n <= loci.MaxChunkChars {
		in.ChunkChars = &n
	}
	r.p.Notes = append(r.p.Notes, Note{Where: where, Input: in})
}

func (r *pmReader) rules() error {
	return r.rows("SELECT predicate_id, inverse_predicate_id, is_symmetric FROM predicate_rules ORDER BY predicate_id", func(row Row) error {
		rule := &loci.PredicateRule{Predicate: r.words[row.Int(0)], Symmetric: row.Int(2) != 0}
		if !row.Null(1) {
			rule.Inverse = r.words[row.Int(1)]
		}
		if strings.HasPrefix(rule.Predicate, "sys:") {
			return nil // built in on both sides
		}
		r.p.Settings = append(r.p.Settings, Setting{Where: fmt.Sprintf("%s:predicate rule of %s", r.p.File, rule.Predicate), Rule: rule})
		return nil
	})
}

func (r *pmReader) equivalents() error {
	type group struct{ namespace, canonical int64 }
	groups := map[group][]string{}
	var order []group
	err := r.rows("SELECT namespace_id, canonical_id, predicate_id FROM predicate_equivalents ORDER BY namespace_id, canonical_id, predicate_id", func(row Row) error {
		g := group{row.Int(0), row.Int(1)}
		if groups[g] == nil {
			order = append(order, g)
			groups[g] = []string{r.words[g.canonical]}
		}
		if row.Int(2) != g.canonical {
			groups[g] = append(groups[g], r.words[row.Int(2)])
		}
		return nil
	})
	for _, g := range order {
		namespace := r.words[g.namespace]
		r.p.Settings = append(r.p.Settings, Setting{
			Where: fmt.Sprintf("%s:equivalents of %s", r.p.File, r.words[g.canonical]), Namespace: &namespace, Words: groups[g],
		})
	}
	return err
}

// rest lists what has no place here.
func (r *pmReader) rest() error {
	err := r.rows("SELECT id FROM embedding_spaces ORDER BY id", func(row Row) error {
		r.p.Leave(r.p.File+":embedding space "+row.Text(0), "embedding space", "", "its vectors are of another program's model; ours are made by embeddings.sync")
		return nil
	})
	if err != nil {
		return err
	}
	err = r.rows("SELECT key FROM meta WHERE key LIKE 'vectorize:%' AND value = 0 ORDER BY key", func(row Row) error {
		r.p.Leave(r.p.File+":"+row.Text(0), "setting", "", "switches vectors off: set it with embeddings.set_vectorization")
		return nil
	})
	if err != nil {
		return err
	}
	return r.rows("SELECT source_id FROM import_runs ORDER BY source_id", func(row Row) error {
		r.p.Leave(r.p.File+":import run "+row.Text(0), "setting", "", "is the other program's own record of an import")
		return nil
	})
}

// WithKey is metadata with the keys by which an import knows a record again. What
// is no object stays as it is: the store says what is wrong with it.
func WithKey(m loci.Metadata, key, hash string) loci.Metadata {
	members := []pair{{KeyName, key}, {HashName, hash}}
	added := object(members...)
	body := strings.TrimSpace(string(m))
	if body == "" || body == "{}" {
		return added
	}
	inner, ok := strings.CutSuffix(body, "}")
	if !ok || !strings.HasPrefix(inner, "{") || strings.TrimSpace(inner[1:]) == "" {
		return m
	}
	return loci.Metadata(strings.TrimSpace(inner) + "," + string(added[1:]))
}
