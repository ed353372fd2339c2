package loci

import (
	"bytes"
	"encoding/json"
	"errors"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/meta"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/valid"
)

// importLine is one line of an import file, decoded and checked as far as it
// can be by itself. One of its parts is set, and refs beside a record or a
// revision.
type importLine struct {
	header     *exportHeader
	setting    *settingLine
	context    *importedContext
	log        *importedLog
	record     store.Stored
	revision   *importedRevision
	vector     *vectorLine
	checkpoint *store.Checkpoint
	memory     *store.AgentMemory
	version    *importedVersion
	edge       *store.PointEdge
	refs       []importRef
}

// importRef says that a record stands on another one of the file.
type importRef struct {
	field string
	id    int64
	kind  store.Kind
	move  func(id int64) // puts another id in its place
	// anyScope says that it may lie in any scope of the namespace.
	anyScope bool
}

// lineDepth is how much deeper than metadata a line nests.
const lineDepth = 8

const lineBeginnings = "is no line of an export, which begins with format, setting, context, log, agent_memory, kind, page_revision, point_version, vector, checkpoint or point_edge"

// parseLine decodes a line; now is the time of records that bring none.
func parseLine(text []byte, now int64) (line importLine, err error) {
	if !utf8.Valid(text) {
		return line, errs.Invalid("", "is not valid UTF-8")
	}
	members, err := scanLine(text)
	if err != nil {
		return line, err
	}
	if len(members) == 0 {
		return line, errs.Invalid("", lineBeginnings)
	}
	given := make(map[string]bool, len(members))
	for _, m := range members {
		if m.Key != strings.ToLower(m.Key) {
			return line, errs.Invalid("", "has a field that is not known; names are in lower case")
		}
		given[m.Key] = true
	}
	first := members[0]
	switch first.Key {
	case "format":
		line.header = &exportHeader{}
		if err := decodeLine(text, line.header); err != nil {
			return line, err
		}
		return line, line.header.check()
	case "setting":
		line.setting = &settingLine{}
		if err := decodeLine(text, line.setting); err != nil {
			return line, err
		}
		return line, line.setting.check()
	case "vector":
		line.vector = &vectorLine{}
		if err := decodeLine(text, line.vector); err != nil {
			return line, err
		}
		return line, line.vector.check()
	case "context":
		line.context, err = parseContext(text)
		return line, err
	case "log":
		line.log, err = parseLog(text)
		return line, err
	case "page_revision":
		line.revision, line.refs, err = parseRevision(text)
		return line, err
	case "checkpoint":
		line.checkpoint, err = parseCheckpoint(text)
		return line, err
	case "agent_memory":
		line.memory, err = parseAgentMemory(text)
		return line, err
	case "point_version":
		line.version, err = parsePointVersion(text)
		return line, err
	case "point_edge":
		line.edge, err = parsePointEdge(&lineInput{text: text, given: given, now: now})
		return line, err
	case "kind":
	default:
		return line, errs.Invalid("", lineBeginnings)
	}
	var kind Kind
	if err := json.Unmarshal(first.Value, &kind); err != nil {
		return line, errs.Invalid("kind", "must be a string")
	}
	parse := importKinds[kind]
	if parse == nil {
		if kindNumbers[kind] != 0 {
			return line, errs.Invalid("kind", "records of kind %s cannot be imported by this version", kind)
		}
		return line, errs.Invalid("kind", "is not one that is known")
	}
	line.record, line.refs, err = parse(&lineInput{text: text, given: given, now: now})
	return line, err
}

// scanLine checks that a line is one JSON object without repeated names, and
// gives its members.
func scanLine(text []byte) ([]meta.Member, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errs.Invalid("", "must be a JSON object")
	}
	members, err := meta.ScanDeeper(text, lineDepth)
	if err != nil {
		return nil, errs.Invalid("", "%s", err)
	}
	return members, nil
}

// decodeLine decodes a line that is known to be a JSON object. What it says of
// an error leaves out what the line holds.
func decodeLine(text []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return errs.Invalid(jsonField(e.Field), "must be of type %s", jsonType(e.Type.Kind()))
	}
	if e, ok := errors.AsType[*errs.Error](err); ok {
		return errs.Invalid(e.Field, "%s", e.Message)
	}
	if strings.Contains(err.Error(), "unknown field") {
		return errs.Invalid("", "has a field that is not known")
	}
	return errs.Invalid("", "has a value that cannot be read")
}

// jsonField is the name of a field without the structs it is embedded in.
func jsonField(path string) string {
	var names []string
	for _, name := range strings.Split(path, ".") {
		if name != "" && name == strings.ToLower(name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, ".")
}

// jsonType is what JSON calls a type.
func jsonType(kind reflect.Kind) string {
	switch kind {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "array"
	case reflect.Struct, reflect.Map:
		return "object"
	case reflect.Float64:
		return "number"
	}
	return "whole number"
}

func (h *exportHeader) check() error {
	switch {
	case h.Format != exportFormat:
		return errs.Invalid("format", "must be %s", exportFormat)
	case h.Version > exportVersion:
		return &errs.Error{Code: errs.SchemaVersion, Field: "version",
			Message: "the file is of a newer format than this program knows: use a newer one"}
	case h.Version < 1:
		return errs.Invalid("version", "must be 1 to %d", exportVersion)
	case h.Revision < 0:
		return errs.Invalid("revision", "must not be negative")
	case h.NextID < 0:
		return errs.Invalid("next_id", "must not be negative")
	case h.Contexts != nil && min(h.Contexts.Scopes, h.Contexts.Revisions, h.Contexts.Log, h.Contexts.Checkpoints) < 0:
		return errs.Invalid("contexts", "must not be negative")
	case h.Agents != nil && min(h.Agents.Memories, h.Agents.Versions, h.Agents.Edges) < 0:
		return errs.Invalid("agents", "must not be negative")
	}
	return nil
}

func (s *settingLine) check() (err error) {
	if s.Namespace != "" || s.Setting != settingRule && s.Setting != settingSpace {
		if err := valid.Label("namespace", s.Namespace, MaxNamespaceBytes); err != nil {
			return err
		}
	}
	switch s.Setting {
	case settingRule:
		if s.Words != nil || s.Path != "" {
			return errs.Invalid("", "is no predicate rule: it has predicate, inverse and symmetric")
		}
		rule := PredicateRule{Namespace: s.Namespace, Predicate: s.Predicate, Inverse: s.Inverse, Symmetric: s.Symmetric}
		r, err := rule.check()
		s.Predicate, s.Inverse = r.Predicate, r.Inverse
		return err
	case settingEquivalents:
		if len(s.Words) == 0 {
			return errs.Invalid("words", "must not be empty")
		}
		for i := range s.Words {
			if s.Words[i], err = validPredicate("words", s.Words[i]); err != nil {
				return err
			}
		}
		return nil
	case settingRoot:
		if s.Path == "" {
			return errs.Invalid("path", "must not be empty")
		}
		return validText("path", s.Path)
	case settingSpace:
		return s.checkSpace()
	case settingVectorization:
		if s.Enabled == nil {
			return errs.Invalid("enabled", "must be given")
		}
		if s.Tier == "" {
			return nil
		}
		return checkTier(false, s.Tier, s.Namespace)
	case settingDefaultSpace:
		return valid.Label("space", s.Space, MaxNamespaceBytes)
	case settingPolicy:
		if !isObject(s.Policy) {
			return errs.Invalid("policy", "must be an object")
		}
		s.Policy = compact(s.Policy)
		return nil
	}
	return errs.Invalid("setting", "is not one that is known")
}

// lineInput is a record's line on its way to a record.
type lineInput struct {
	text  []byte
	given map[string]bool // names of the fields that the line has
	now   int64
}

// importKinds decode the records of each kind.
var importKinds = map[Kind]func(*lineInput) (store.Stored, []importRef, error){
	KindMemory:    parseMemory,
	KindEntity:    parseEntity,
	KindRelation:  parseRelation,
	KindEvent:     parseEvent,
	KindNote:      parseNote,
	KindChunk:     parseChunk,
	KindPage:      parsePage,
	KindFact:      parseFact,
	KindEpisode:   parseEpisode,
	KindProcedure: parseProcedure,
}

// header checks a record's header as a write of it would.
func (in *lineInput) header(h *Header) (r store.Record, err error) {
	if h.ID < 1 {
		return r, errs.Invalid("id", "must be above 0")
	}
	input := RecordInput{Tags: h.Tags, Evidence: h.Evidence, Metadata: h.Metadata, Position: h.Position}
	if in.given["namespace"] {
		input.Namespace = &h.Namespace
	}
	if in.given["scope"] {
		input.Scope = &h.Scope
	}
	if in.given["thread"] {
		input.Thread = &h.Thread
	}
	draft, err := input.draft(nil, "")
	if err != nil {
		return r, err
	}
	r = draft.replacement()
	r.Namespace, r.Scope = draft.place()
	r.ID, r.Created, r.Updated, r.Revision = int64(h.ID), h.CreatedAtUS, h.UpdatedAtUS, h.Revision
	if !in.given["created_at_us"] {
		r.Created = in.now
	}
	if !in.given["updated_at_us"] {
		r.Updated = max(in.now, r.Created)
	}
	if r.Updated < r.Created {
		return r, errs.Invalid("updated_at_us", "is before created_at_us")
	}
	if r.Revision < 0 {
		return r, errs.Invalid("revision", "must not be negative")
	}
	return r, nil
}

func parseMemory(in *lineInput) (store.Stored, []importRef, error) {
	var line memoryLine
	line.State.Strength = 1
	if err := decodeLine(in.text, &line); err != nil {
		return nil, nil, err
	}
	r, err := in.header(&line.Header)
	if err != nil {
		return nil, nil, err
	}
	m := &store.Memory{Record: r, Type: line.MemoryType, Judgment: strings.TrimSpace(line.Judgment), Reasoning: line.Reasoning}
	m.Kind = store.KindMemory
	if !in.given["memory_type"] {
		m.Type = DefaultMemoryType
	}
	if err := valid.Label("memory_type", m.Type, MaxLabelBytes); err != nil {
		return nil, nil, err
	}
	if err := validText("judgment", m.Judgment); err != nil {
		return nil, nil, err
	}
	if err := validText("reasoning", m.Reasoning); err != nil {
		return nil, nil, err
	}
	normalized := normalize(m.Judgment)
	if normalized == "" {
		return nil, nil, errs.Invalid("judgment", "must not be blank")
	}
	state, err := validState("state.", &line.State)
	if err != nil {
		return nil, nil, err
	}
	m.State = *state
	m.JudgmentHash = judgmentHash(m.Namespace, m.Scope, normalized)
	return m, nil, nil
}

// fingerprintBytes is the length of a file's fingerprint at most.
const fingerprintBytes = 64

func parseNote(in *lineInput) (store.Stored, []importRef, error) {
	var line noteLine
	if err := decodeLine(in.text, &line); err != nil {
		return nil, nil, err
	}
	r, err := in.header(&line.Header)
	if err != nil {
		return nil, nil, err
	}
	n := &store.Note{Record: r, Path: line.Path, Bytes: line.Bytes, ChunkChars: line.ChunkChars, Modified: line.Modified, Fingerprint: line.Fingerprint}
	n.Kind = store.KindNote
	switch {
	case n.Path == "" || !utf8.ValidString(n.Path) || len(n.Path) > MaxTextBytes:
		return nil, nil, errs.Invalid("path", "must be a path below the root of the notes")
	case n.Path != path.Clean(n.Path) || n.Path == "." || !filepath.IsLocal(filepath.FromSlash(n.Path)) || strings.ContainsAny(n.Path, "\x00\n\r"):
		return nil, nil, errs.Invalid("path", "must be a clean path below the root of the notes")
	case n.Bytes < 0:
		return nil, nil, errs.Invalid("bytes", "must not be negative")
	case n.ChunkChars < MinChunkChars || n.ChunkChars > MaxChunkChars:
		return nil, nil, errs.Invalid("chunk_chars", "must be %d to %d", MinChunkChars, MaxChunkChars)
	case len(n.Fingerprint) > fingerprintBytes:
		return nil, nil, errs.Invalid("fingerprint", "has more than %d bytes", fingerprintBytes)
	}
	if n.Fingerprint == nil {
		n.Fingerprint = []byte{}
	}
	return n, nil, nil
}

func parseChunk(in *lineInput) (store.Stored, []importRef, error) {
	var line chunkLine
	if err := decodeLine(in.text, &line); err != nil {
		return nil, nil, err
	}
	r, err := in.header(&line.Header)
	if err != nil {
		return nil, nil, err
	}
	c := &store.Chunk{Record: r, NoteID: int64(line.NoteID), Ordinal: line.Ordinal, Offset: line.Offset, Limit: line.Limit, Content: line.Content}
	c.Kind = store.KindChunk
	switch {
	case c.Ordinal < 0:
		return nil, nil, errs.Invalid("ordinal", "must not be negative")
	case c.Offset < 1:
		return nil, nil, errs.Invalid("offset", "counts from 1")
	case c.Limit < 1:
		return nil, nil, errs.Invalid("limit", "must be at least 1")
	case len(c.Content) > MaxNoteBytes:
		return nil, nil, errs.Invalid("content", "is longer than %d bytes", MaxNoteBytes)
	}
	return c, []importRef{{field: "note_id", id: c.NoteID, kind: store.KindNote, move: func(id int64) { c.NoteID = id }}}, nil
}
