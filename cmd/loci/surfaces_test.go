package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/internal/cli"
	"github.com/loci-memory/loci/internal/httpapi"
	"github.com/loci-memory/loci/op"
)

// sample is one call of an operation. The calls run in order on one store each
// for the command line and for HTTP.
type sample struct {
	op    string
	input string
	args  []string // the same as a command line; empty: loci call OP INPUT
	code  loci.Code
	want  string // part of the result
	// embedder has a model bound while the operation runs, and left unbound
	// otherwise.
	embedder bool
}

const day = "86400000000"

const graphBatch = `{"entities":[{"ref":"a","name":"Ada","entity_type":"person","aliases":["The Keeper"]},{"ref":"l","name":"Lamp","attributes":{"colour":["red"]}}],` +
	`"relations":[{"subject":{"ref":"a"},"predicate":"repairs","object":{"ref":"l"},"evidence":[{"source":"log"}]}],` +
	`"events":[{"name":"Storm","tags":["night"],"participants":[{"ref":"l"},{"ref":"a"}]}]}`

var samples = []sample{
	{op: "health", input: `{}`, args: []string{"health"}, want: `"record_count":0`},
	{op: "remember", input: `{"text":"The tide table is updated weekly.","tags":["harbour","Tide"],"thread":"log","position":1}`,
		args: []string{"remember", "The tide table", "is updated weekly.", "--tags", "harbour,Tide", "--thread", "log", "--position", "1"},
		want: `"tags":["harbour","tide"]`},
	{op: "remember", input: `{"text":"潮水表每周更新","type":"task"}`, args: []string{"remember", "潮水表每周更新", "--type", "task"}, want: `"type":"task"`},
	{op: "remember", input: `{"text":"the TIDE table is updated weekly.","reasoning":"Seen on the wall."}`, want: `"revision":3`},
	{op: "remember", input: `{"text":"  "}`, args: []string{"remember", "  "}, code: loci.ErrValidation},
	{op: "recall", input: `{"query":"tide table","limit":3}`, args: []string{"recall", "tide table", "--limit", "3"}, want: `"reasoning":"Seen on the wall."`},
	{op: "recall", input: `{"query":"潮水"}`, args: []string{"recall", "潮水"}, want: `潮水表每周更新`},
	{op: "recall", input: `{"query":"tide","limit":0}`, args: []string{"recall", "tide", "--limit", "0"}, code: loci.ErrValidation},
	{op: "recall", input: `{"query":"tide","namespace":""}`, args: []string{"recall", "tide", "--namespace", ""}, code: loci.ErrValidation},
	{op: "recall", input: `{"query":"tide","scopes":[]}`, code: loci.ErrValidation},
	{op: "memories.upsert", input: `{"judgment":"Lamps are lit at seven.","scope":"private","metadata":{"b":1.50,"a":{"x":[]}},"created_at_us":0,"state":{"strength":5}}`,
		args: []string{"memories", "upsert", "--judgment", "Lamps are lit at seven.", "--scope", "private", "--metadata", `{"b":1.50,"a":{"x":[]}}`, "--created-at-us", "0", "--state-strength", "5"},
		want: `"metadata":{"b":1.50,"a":{"x":[]}}`},
	{op: "memories.upsert", input: `{"id":"777777","judgment":"x"}`, args: []string{"memories", "upsert", "--id", "777777", "--judgment", "x"}, code: loci.ErrNotFound},
	{op: "memories.upsert", input: `{"id":"1","judgment":"x","expected_revision":0}`, code: loci.ErrStaleRevision},
	{op: "memories.upsert_many", input: `{"memories":[{"judgment":"Ropes are red."},{"judgment":"Ropes are long.","tags":["rope"]}]}`,
		args: []string{"memories", "upsert-many", `{"memories":[{"judgment":"Ropes are red."},{"judgment":"Ropes are long.","tags":["rope"]}]}`},
		want: "Ropes are long."},
	{op: "memories.upsert_many", input: `{"memories":[{"judgment":"fine"},{"judgment":" "}]}`, code: loci.ErrValidation},
	{op: "memories.upsert_by_judgment", input: `{"judgment":"ropes ARE red.","tags":["rope"],"evidence":[{"source":"wall","offset":1,"limit":2}]}`,
		args: []string{"memories", "upsert-by-judgment", "--judgment", "ropes ARE red.", "--tags", "rope", "--evidence", `[{"source":"wall","offset":1,"limit":2}]`},
		want: `"source":"wall"`},
	{op: "memories.get", input: `{"id":"1"}`, args: []string{"memories", "get", "1"}, want: `"id":"1"`},
	{op: "memories.get", input: `{"id":1}`, want: `"id":"1"`},
	{op: "memories.get", input: `{"id":"3"}`, args: []string{"memories", "get", "3"}, code: loci.ErrNotFound},
	{op: "memories.get", input: `{"id":"3","filter":{"scopes":["public","private"]}}`, args: []string{"memories", "get", "3", "--scope", "public", "--scope", "private"}, want: "Lamps"},
	{op: "memories.list", input: `{"limit":2}`, args: []string{"memories", "list", "--limit", "2"}, want: `"next_cursor":"2"`},
	{op: "memories.list", input: `{"limit":2,"after":"2","filter":{"tags":["rope"]}}`, args: []string{"memories", "list", "--limit", "2", "--after", "2", "--tags", "rope"}, want: "Ropes are long."},
	{op: "memories.list", input: `{"filter":{"namespace":"nobody"}}`, args: []string{"memories", "list", "--namespace", "nobody"}, want: `"items":[]`},
	{op: "search", input: `{"query":"ropes","filter":{"tags":["rope"]},"with_total":true,"explain":true,"text_weight":0.5}`,
		args: []string{"search", "ropes", "--tags", "rope", "--with-total", "--explain", "--text-weight", "0.5"}, want: `"total":2`},
	{op: "search", input: `{"query":"lamps","filter":{"where":[{"key":"b","op":"eq","value":1.5}],"scopes":["private"]}}`,
		args: []string{"search", "lamps", "--where", `[{"key":"b","op":"eq","value":1.5}]`, "--scope", "private"}, want: "Lamps"},
	{op: "search", input: `{"query":" "}`, args: []string{"search", " "}, code: loci.ErrValidation},
	{op: "search", input: `{"query":"(AND \"C++\" -"}`, args: []string{"search", `(AND "C++" -`}, want: `"hits":[]`},
	{op: "memories.feedback", input: `{"recalled_ids":["1",2],"useful_ids":["1"],"now_us":7}`,
		args: []string{"memories", "feedback", "--recalled-ids", "1,2", "--useful-ids", "1", "--now-us", "7"}, want: `"boosted":1`},
	{op: "memories.feedback", input: `{"recalled_ids":["1"],"useful_ids":["2"]}`, code: loci.ErrValidation},
	{op: "memories.decay", input: `{"at_us":` + day + `0,"filter":{"scopes":["private"]}}`,
		args: []string{"memories", "decay", "--at-us", day + "0", "--scope", "private"}, want: `"decayed":1`},
	{op: "memories.decay", input: `{"policy":{"tier0_cycle_days":0}}`, args: []string{"memories", "decay", "--policy-tier0-cycle-days", "0"}, code: loci.ErrValidation},
	{op: "memories.delete", input: `{"id":"2"}`, args: []string{"memories", "delete", "2"}, want: `"value":true`},
	{op: "memories.delete", input: `{"id":"2"}`, args: []string{"memories", "delete", "2"}, want: `"value":false`},
	{op: "memories.delete_by_filter", input: `{"filter":{"tags":["rope"]}}`, args: []string{"memories", "delete-by-filter", "--tags", "rope"}, code: loci.ErrValidation},
	{op: "memories.delete_by_filter", input: `{"filter":{"tags":["rope"]},"all":true,"dry_run":true}`,
		args: []string{"memories", "delete-by-filter", "--tags", "rope", "--all", "--dry-run"}, want: `"value":2`},
	{op: "memories.delete_by_filter", input: `{"filter":{"tags":["rope"],"namespace":"default","scopes":["public"]}}`,
		args: []string{"memories", "delete-by-filter", "--tags", "rope", "--namespace", "default", "--scope", "public"}, want: `"value":2`},
	{op: "graph.apply_batch", input: graphBatch, args: []string{"graph", "apply-batch", graphBatch}, want: `"subject_id":"6"`},
	{op: "graph.apply_batch", input: graphBatch, want: `"participants":["6","7"]`},
	{op: "graph.apply_batch", input: `{"entities":[{"name":"Ada","match":"none"}],"relations":[{"subject":{"id":"777"},"predicate":"p","object":{"id":"6"}}]}`, code: loci.ErrNotFound},
	{op: "graph.apply_batch", input: `{"entities":[{"name":"Ada","match":"close"}]}`, code: loci.ErrValidation},
	{op: "graph.get", input: `{"kind":"relation","id":"8"}`, args: []string{"graph", "get", "relation", "8"}, want: `"predicate":"repairs"`},
	{op: "graph.get", input: `{"kind":"relation","id":"6"}`, args: []string{"graph", "get", "relation", "6"}, code: loci.ErrNotFound},
	{op: "graph.get", input: `{"kind":"memory","id":"1"}`, args: []string{"graph", "get", "memory", "1"}, code: loci.ErrValidation},
	{op: "graph.list", input: `{"kind":"entity","limit":1}`, args: []string{"graph", "list", "entity", "--limit", "1"}, want: `"next_cursor":"6"`},
	{op: "graph.resolve", input: `{"name":"the KEEPER","limit":5}`, args: []string{"graph", "resolve", "the KEEPER", "--limit", "5"}, want: `"name":"Ada"`},
	{op: "graph.neighbors", input: `{"id":"6"}`, args: []string{"graph", "neighbors", "6"}, want: `"name":"Lamp"`},
	{op: "graph.neighbors", input: `{"id":"8"}`, args: []string{"graph", "neighbors", "8"}, code: loci.ErrNotFound},
	{op: "graph.events_for_entity", input: `{"id":"7","filter":{"tags":["night"]}}`, args: []string{"graph", "events-for-entity", "7", "--tags", "night"}, want: `"name":"Storm"`},
	{op: "search_with_context", input: `{"query":"ada","context_limit":3}`,
		args: []string{"search-with-context", "ada", "--context-limit", "3"}, want: `"context":`},
	{op: "search_preset", input: `{"preset":"broad","query":"ada","budget":{"memory_chars":500}}`,
		args: []string{"preset", "ada", "--preset", "broad", "--budget-memory-chars", "500"}, want: `"context_events":[`},
	{op: "search", input: `{"query":"ada","kinds":["relation"]}`, args: []string{"search", "ada", "--kinds", "relation"}, want: `"key":"relation:8"`},
	{op: "graph.import_text", input: `{"text":"keeps(Ada) = Log\nkeeps(Ada, Key)","scope":"private","tags":["kin"]}`, want: `"value":{"entities":3,"relations":2}`},
	{op: "graph.import_text", input: `{"text":"keeps(Ada)"}`, code: loci.ErrValidation},
	{op: "graph.stats", input: `{}`, args: []string{"graph", "stats"}, want: `"component_count":1`},
	{op: "graph.stats", input: `{"filter":{"tags":["none"]}}`, args: []string{"graph", "stats", "--tags", "none"}, want: `"edge_count":0`},
	{op: "graph.ego", input: `{"root":"7"}`, args: []string{"graph", "ego", "7"}, want: `"entities":[]`},
	{op: "graph.ego", input: `{"root":"777"}`, args: []string{"graph", "ego", "777"}, code: loci.ErrNotFound},
	{op: "graph.ego", input: `{"root":"7","depth":2,"limit":3,"direction":"in"}`, args: []string{"graph", "ego", "7", "--depth", "2", "--limit", "3", "--direction", "in"}, want: `"name":"Ada"`},
	{op: "graph.ego", input: `{"root":"7","direction":"up"}`, args: []string{"graph", "ego", "7", "--direction", "up"}, code: loci.ErrValidation},
	{op: "graph.set_predicate_rule", input: `{"predicate":"Repairs","inverse":"is repaired by"}`,
		args: []string{"graph", "set-predicate-rule", "Repairs", "--inverse", "is repaired by"}, want: `"predicate":"repairs"`},
	{op: "graph.set_predicate_rule", input: `{"predicate":"a","inverse":"b","symmetric":true}`,
		args: []string{"graph", "set-predicate-rule", "a", "--inverse", "b", "--symmetric"}, code: loci.ErrValidation},
	{op: "graph.set_predicate_rule", input: `{"predicate":"likes","symmetric":true,"namespace":"elsewhere"}`, want: `"symmetric":true`},
	{op: "graph.predicate_rules", input: `{}`, args: []string{"graph", "predicate-rules"}, want: `"inverse":"is repaired by"`},
	{op: "graph.predicate_rules", input: `{"namespace":"elsewhere"}`, args: []string{"graph", "predicate-rules", "--namespace", "elsewhere"}, want: `"predicate":"likes"`},
	{op: "graph.path", input: `{"from":"7","to":"6"}`, args: []string{"graph", "path", "7", "6"}, want: `"name":"Ada"`},
	{op: "graph.path", input: `{"from":"7","to":"8"}`, args: []string{"graph", "path", "7", "8"}, code: loci.ErrNotFound},
	{op: "graph.strongly_connected", input: `{}`, args: []string{"graph", "strongly-connected"}, want: `"components":[["6","7"]]`},
	{op: "graph.delete_predicate_rule", input: `{"predicate":"repairs"}`, args: []string{"graph", "delete-predicate-rule", "repairs"}, want: `"value":true`},
	{op: "graph.delete_predicate_rule", input: `{"predicate":"repairs"}`, args: []string{"graph", "delete-predicate-rule", "repairs"}, want: `"value":false`},
	{op: "graph.set_predicate_equivalents", input: `{"groups":[["repairs","mends"],["lamp","lantern"]]}`,
		args: []string{"graph", "set-predicate-equivalents", `{"groups":[["repairs","mends"],["lamp","lantern"]]}`}, want: `"value":4`},
	{op: "graph.set_predicate_equivalents", input: `{"groups":[[]]}`, code: loci.ErrValidation},
	{op: "graph.predicate_equivalents", input: `{}`, args: []string{"graph", "predicate-equivalents"}, want: `"words":["mends","repairs"]`},
	{op: "graph.expand_query", input: `{"text":"who mends it?"}`, args: []string{"graph", "expand-query", "who mends it?"}, want: `"words":["mends","repairs"]`},
	{op: "search", input: `{"query":"ada mends","kinds":["relation"]}`, args: []string{"search", "ada mends", "--kinds", "relation"}, want: `"key":"relation:8"`},
	{op: "graph.delete_predicate_equivalents", input: `{"words":["mends"]}`, args: []string{"graph", "delete-predicate-equivalents", "--words", "mends"}, want: `"value":1`},
	{op: "graph.delete_predicate_equivalents", input: `{}`, args: []string{"graph", "delete-predicate-equivalents"}, want: `"value":3`},
	{op: "graph.delete", input: `{"kind":"entity","id":"6"}`, args: []string{"graph", "delete", "entity", "6"}, code: loci.ErrConflict},
	{op: "graph.delete", input: `{"kind":"event","id":"9"}`, args: []string{"graph", "delete", "event", "9"}, want: `"value":true`},
	{op: "graph.delete", input: `{"kind":"event","id":"9"}`, want: `"value":false`},
	{op: "graph.delete_by_filter", input: `{}`, args: []string{"graph", "delete-by-filter"}, code: loci.ErrValidation},
	{op: "graph.delete_by_filter", input: `{"all":true,"dry_run":true}`, args: []string{"graph", "delete-by-filter", "--all", "--dry-run"}, want: `"value":3`},
	{op: "graph.delete_by_filter", input: `{"filter":{"namespace":"default","scopes":["public"]}}`,
		args: []string{"graph", "delete-by-filter", "--namespace", "default", "--scope", "public"}, want: `"value":3`},
	{op: "notes.root", input: `{}`, args: []string{"notes", "root"}, want: `"root":""`},
	{op: "notes.upsert_file", input: `{"path":"log.md"}`, args: []string{"notes", "upsert-file", "log.md"}, code: loci.ErrValidation},
	{op: "notes.set_root", input: `{"root":"{notes}/nothing"}`, args: []string{"notes", "set-root", "{notes}/nothing"}, code: loci.ErrValidation},
	{op: "notes.set_root", input: `{"root":"{notes}"}`, args: []string{"notes", "set-root", "{notes}"}, want: `"revision":`},
	{op: "notes.root", input: `{}`, args: []string{"notes", "root"}, want: `"root":"`},
	{op: "notes.upsert_file", input: `{"path":"harbour/log.md","tags":["Ship"],"chunk_chars":100}`,
		args: []string{"notes", "upsert-file", "harbour/log.md", "--tags", "Ship", "--chunk-chars", "100"}, want: `"tags":["harbour","log","ship"]`},
	{op: "notes.upsert_file", input: `{"path":"nothing.md"}`, args: []string{"notes", "upsert-file", "nothing.md"}, code: loci.ErrIO},
	{op: "notes.upsert_file", input: `{"path":"{notes}/../x.md"}`, args: []string{"notes", "upsert-file", "{notes}/../x.md"}, code: loci.ErrValidation},
	{op: "notes.sync_dir", input: `{"dry_run":true,"tags":["crew"]}`, args: []string{"notes", "sync-dir", "--dry-run", "--tags", "crew"}, want: `"added":1,"changed":1`},
	{op: "notes.sync_dir", input: `{}`, args: []string{"notes", "sync-dir"}, want: `"skipped":1`},
	{op: "notes.sync_dir", input: `{"namespace":"elsewhere"}`, args: []string{"notes", "sync-dir", "--namespace", "elsewhere"}, code: loci.ErrValidation},
	{op: "notes.list", input: `{"limit":1}`, args: []string{"notes", "list", "--limit", "1"}, want: `"next_cursor":"{note}"`},
	{op: "notes.get", input: `{"id":"{note}"}`, args: []string{"notes", "get", "{note}"}, want: `"title":"log"`},
	{op: "notes.get", input: `{"id":"{note+1}"}`, args: []string{"notes", "get", "{note+1}"}, code: loci.ErrNotFound},
	{op: "notes.get_chunk", input: `{"id":"{note+2}"}`, args: []string{"notes", "get-chunk", "{note+2}"}, want: `"content":"The *walrus* came back."`},
	{op: "notes.get_chunk", input: `{"id":"{note}"}`, args: []string{"notes", "get-chunk", "{note}"}, code: loci.ErrNotFound},
	{op: "notes.chunks", input: `{"note_id":"{note}","limit":1}`, args: []string{"notes", "chunks", "{note}", "--limit", "1"}, want: `"next_cursor":"1"`},
	{op: "notes.chunks", input: `{"note_id":"{note}","after":"1"}`, args: []string{"notes", "chunks", "{note}", "--after", "1"}, want: `"ordinal":1`},
	{op: "notes.chunks", input: `{"note_id":"77"}`, args: []string{"notes", "chunks", "77"}, code: loci.ErrNotFound},
	{op: "search", input: `{"query":"walrus","filter":{"note_ids":["{note}"]}}`, args: []string{"search", "walrus", "--note-ids", "{note}"}, want: `"note_chunks":1`},
	{op: "search", input: `{"query":"walrus","top_chunks_per_note":0}`, args: []string{"search", "walrus", "--top-chunks-per-note", "0"}, want: `"key":"chunk:{note+2}"`},
	{op: "chunk_text", input: `{"content":"one\n\ntwo","target":16}`, args: []string{"chunk-text", "--content", "one\n\ntwo", "--target", "16"}, want: `"offset":3`},
	{op: "chunk_text", input: `{"content":"x","target":15}`, args: []string{"chunk-text", "--content", "x", "--target", "15"}, code: loci.ErrValidation},
	{op: "notes.delete", input: `{"id":"{note}"}`, args: []string{"notes", "delete", "{note}"}, want: `"value":true`},
	{op: "notes.delete", input: `{"id":"{note}"}`, args: []string{"notes", "delete", "{note}"}, want: `"value":false`},
	{op: "notes.delete_by_filter", input: `{}`, args: []string{"notes", "delete-by-filter"}, code: loci.ErrValidation},
	{op: "notes.delete_by_filter", input: `{"all":true,"filter":{"tags":["crew"]}}`, args: []string{"notes", "delete-by-filter", "--all", "--tags", "crew"}, want: `"value":1`},
	{op: "notes.unset_root", input: `{}`, args: []string{"notes", "unset-root"}, want: `"value":true`},
	{op: "notes.unset_root", input: `{}`, args: []string{"notes", "unset-root"}, want: `"value":false`},
	{op: "embeddings.status", input: `{}`, args: []string{"embeddings", "status"}, code: loci.ErrNotFound},
	{op: "embeddings.register_space", input: `{"id":"s","model":"m 1","dimension":3}`,
		args: []string{"embeddings", "register-space", "--id", "s", "--model", "m 1", "--dimension", "3"}, want: `"encoding":"sq8"`},
	{op: "embeddings.register_space", input: `{"id":"s","model":"m 2","dimension":3}`, code: loci.ErrConflict},
	{op: "embeddings.register_space", input: `{"id":"t","model":"m","dimension":0}`, code: loci.ErrValidation},
	{op: "embeddings.register_space", input: `{"id":"t","model":"m","dimension":2,"encoding":"f16"}`, code: loci.ErrValidation},
	{op: "embeddings.spaces", input: `{}`, args: []string{"embeddings", "spaces"}, want: `"model":"m 1"`},
	{op: "embeddings.embedder_space", input: `{"space":"s"}`, args: []string{"embeddings", "embedder-space", "s"}, want: `"dimension":3`},
	{op: "embeddings.embedder_space", input: `{"space":"t"}`, args: []string{"embeddings", "embedder-space", "t"}, want: `{}`},
	{op: "embeddings.set_default_space", input: `{"space":"s"}`, args: []string{"embeddings", "set-default-space", "s"}, want: `"value":"s"`},
	{op: "embeddings.set_default_space", input: `{"space":"t"}`, args: []string{"embeddings", "set-default-space", "t"}, code: loci.ErrNotFound},
	{op: "embeddings.default_space", input: `{}`, args: []string{"embeddings", "default-space"}, want: `"space":"s"`},
	{op: "embeddings.vectorization", input: `{"tier":"notes"}`, args: []string{"embeddings", "vectorization", "notes"}, want: `"enabled":false`},
	{op: "embeddings.vectorization", input: `{"tier":"chunks"}`, args: []string{"embeddings", "vectorization", "chunks"}, code: loci.ErrValidation},
	{op: "embeddings.set_vectorization", input: `{"tier":"notes","enabled":true}`, args: []string{"embeddings", "enable", "notes"}, want: `"value":true`},
	{op: "embeddings.vectorization", input: `{"tier":"notes"}`, args: []string{"embeddings", "vectorization", "notes"}, want: `"enabled":true`},
	{op: "embeddings.set_namespace_vectorization", input: `{"enabled":false}`, args: []string{"embeddings", "disable"}, want: `"value":false`},
	{op: "embeddings.namespace_vectorization", input: `{}`, args: []string{"embeddings", "namespace-vectorization"}, want: `"enabled":false`},
	{op: "embeddings.set_namespace_vectorization", input: `{"enabled":true}`,
		args: []string{"embeddings", "set-namespace-vectorization", "--enabled"}, want: `"value":true`},
	{op: "embeddings.status", input: `{}`, args: []string{"embeddings", "status"}, want: `"space":"s"`},
	{op: "embeddings.sync", input: `{"space":"s"}`, args: []string{"call", "embeddings.sync", `{"space":"s"}`}, embedder: true, code: loci.ErrValidation},
	{op: "embeddings.sync", input: `{"batch":2}`, args: []string{"embeddings", "sync", "--batch", "2"}, embedder: true, want: `"ready":true`},
	{op: "embeddings.sync", input: `{"batch":0}`, args: []string{"embeddings", "sync", "--batch", "0"}, embedder: true, code: loci.ErrValidation},
	{op: "embeddings.status", input: `{"space":"fake"}`, args: []string{"embeddings", "status", "--space", "fake"}, embedder: true, want: `"ready":true`},
	{op: "embeddings.vector_ready", input: `{"tier":"memory","space":"fake"}`,
		args: []string{"embeddings", "vector-ready", "memory", "--space", "fake"}, want: `"ready":true`},
	{op: "embeddings.vector_ready", input: `{"tier":"memory"}`, args: []string{"embeddings", "vector-ready", "memory"}, want: `"ready":false`},
	{op: "embeddings.set_default_space", input: `{"space":""}`, args: []string{"embeddings", "set-default-space", ""}, want: `"value":""`},
	{op: "embeddings.vector_ready", input: `{"tier":"memory"}`, args: []string{"embeddings", "vector-ready", "memory"}, code: loci.ErrValidation},
	{op: "search", input: `{"query":"nobody wrote that word","embed_space":"fake","exact":true,"explain":true,"limit":1}`,
		args:     []string{"search", "nobody wrote that word", "--embed-space", "fake", "--exact", "--explain", "--limit", "1"},
		embedder: true, want: `"vector_used":true`},
	{op: "recall", input: `{"query":"tide"}`, args: []string{"recall", "tide"}, embedder: true, want: `"degraded":[]`},
	{op: "recall", input: `{"query":"tide"}`, args: []string{"recall", "tide"}, want: `"degraded":["no_space"]`},
	{op: "embeddings.delete_space", input: `{"space":"s"}`, args: []string{"embeddings", "delete-space", "s"}, want: `"value":true`},
	{op: "embeddings.delete_space", input: `{"space":"s"}`, args: []string{"embeddings", "delete-space", "s"}, want: `"value":false`},
	{op: "embeddings.delete_space", input: `{"space":"fake"}`, args: []string{"embeddings", "delete-space", "fake"}, want: `"value":true`},
	{op: "reranker_registered", input: `{}`, args: []string{"reranker-registered"}, want: `"registered":false`},
	{op: "update_index", input: `{}`, args: []string{"update-index"}, want: `"pending_index_updates":0`},
	{op: "rebuild_indexes", input: `{}`, args: []string{"rebuild-indexes"}, want: `"index_usable":true`},
	{op: "rebuild_progress", input: `{}`, args: []string{"rebuild-progress"}, want: `"active":false`},
	{op: "recall", input: `{"query":"tide"}`, args: []string{"recall", "tide"}, want: "TIDE"},
	{op: "backup", input: `{"target":"{tmp}/snapshot"}`, args: []string{"backup", "{tmp}/snapshot"}, want: `"revision":`},
	{op: "backup", input: `{"target":"{tmp}/snapshot"}`, args: []string{"backup", "{tmp}/snapshot"}, code: loci.ErrIO},
	{op: "backup", input: `{"target":""}`, args: []string{"backup", ""}, code: loci.ErrValidation},
	{op: "health", input: `{"deep":true}`, args: []string{"health", "--deep"}, want: `"integrity":"ok"`},
}

// in gives the sample with a folder for its files in the place of {tmp}, and the
// folder beside it that holds notes in the place of {notes}. {note} is the id of
// the note that was written last, {note+1} that of its first chunk, {checkpoint}
// that of the checkpoint that was made last, {edge} that of the relation of an agent
// memory that was made last.
func (s sample) in(folder string, note int, checkpoint, edge string) sample {
	notes := filepath.ToSlash(filepath.Join(filepath.Dir(folder), "notes"))
	fill := func(text string) string {
		return strings.NewReplacer("{tmp}", filepath.ToSlash(folder), "{notes}", notes,
			"{note}", fmt.Sprint(note), "{note+1}", fmt.Sprint(note+1), "{note+2}", fmt.Sprint(note+2),
			"{checkpoint}", checkpoint, "{edge}", edge).Replace(text)
	}
	s.want = fill(s.want)
	s.input, s.args = fill(s.input), slices.Clone(s.args)
	for i, arg := range s.args {
		s.args[i] = fill(arg)
	}
	return s
}

// talk is a conversation to be imported.
const talk = `{"thread":"talk","role":"user","text":"Is the lamp lit?","id":"a"}
{"thread":"talk","role":"assistant","text":"It is.","id":"b"}
`

// clock gives the same times to both stores.
func clock() func() time.Time {
	var mu sync.Mutex
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
}

// answer is what a surface said: a result, or an error.
type answer struct {
	Result  any
	Failure op.Failure
}

// TestEverySurface calls every operation on the command line and over HTTP,
// and holds that both say the same. An operation without a sample fails it.
func TestEverySurface(t *testing.T) {
	open := func(ctx context.Context, dir string, opts *loci.Options) (*loci.DB, error) {
		o := loci.Options{}
		if opts != nil {
			o = *opts
		}
		o.Clock, o.NoBackgroundEmbedding, o.NoBackgroundSweep = clock(), true, true
		return loci.Open(ctx, dir, &o)
	}
	dir := t.TempDir()
	db, err := open(t.Context(), t.TempDir(), &loci.Options{WaitForIndex: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	server := httptest.NewServer(httpapi.Handler(httpapi.Config{Caller: op.Local(db)}))
	t.Cleanup(server.Close)

	sampled := map[string]bool{}
	note, checkpoint, edge := 0, "", ""
	files := t.TempDir()
	for name, text := range map[string]string{"harbour/log.md": "# Log\n\nThe *walrus* came back.\n", "crew.md": "Nobody.", "bad.md": "\xff\xfe\xfd", "talk.jsonl": talk} {
		path := filepath.Join(files, "notes", filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{"cli", "http"} {
		if err := os.Mkdir(filepath.Join(files, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range slices.Concat(samples, agentSamples, contextSamples) {
		o, ok := op.Default().Lookup(s.op)
		if !ok {
			t.Fatalf("there is no operation %s", s.op)
		}
		name := s.op + " " + s.input
		onCLI := s.in(filepath.Join(files, "cli"), note, checkpoint, edge)
		s = s.in(filepath.Join(files, "http"), note, checkpoint, edge)
		args := onCLI.args
		if len(args) == 0 {
			args = []string{"call", s.op, onCLI.input}
		}
		with := "none"
		if s.embedder {
			with = "builtin"
			bindFake(t, db)
		}
		fromCLI := askCLI(t, open, dir, append([]string{"--embedder", with}, args...), s.code)
		fromHTTP := askHTTP(t, server.URL, s)
		db.Embeddings().UnregisterEmbedder("fake")
		if !reflect.DeepEqual(forget(fromCLI), forget(fromHTTP)) {
			t.Errorf("%s:\ncommand line: %+v\nHTTP:         %+v", name, fromCLI, fromHTTP)
		}
		if s.code != "" {
			if fromHTTP.Failure.Code != s.code || fromHTTP.Failure.Operation != s.op || fromHTTP.Failure.Message == "" {
				t.Errorf("%s: %+v, want %s", name, fromHTTP.Failure, s.code)
			}
			continue
		}
		sampled[s.op] = true
		if receipt, ok := fromHTTP.Result.(map[string]any); ok && s.op == "notes.upsert_file" {
			id := receipt["value"].(map[string]any)["id"].(string)
			if note, err = strconv.Atoi(id); err != nil {
				t.Fatal(err)
			}
		}
		if made, ok := fromHTTP.Result.(map[string]any); ok && s.op == "context.checkpoint" {
			checkpoint = made["checkpoint"].(map[string]any)["checkpoint_id"].(string)
		}
		if made, ok := fromHTTP.Result.(map[string]any); ok && strings.HasSuffix(s.op, ".relate") {
			edge = made["value"].(map[string]any)["id"].(string)
		}
		raw, err := marshal(fromHTTP.Result)
		if err != nil {
			t.Fatal(err)
		}
		if fromHTTP.Failure.Code != "" || !strings.Contains(raw, squeeze(t, s.want)) {
			t.Errorf("%s: %s %+v, want %s", name, raw, fromHTTP.Failure, s.want)
		}
		schema, err := o.OutputSchema().Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		var plain any
		if err := json.Unmarshal([]byte(raw), &plain); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(plain); err != nil {
			t.Errorf("%s: the result does not fit its schema: %v\n%s", name, err, raw)
		}
	}
	for _, o := range op.Default().All() {
		if !sampled[o.Name] {
			t.Errorf("%s has no sample that succeeds", o.Name)
		}
	}
}

// fakeEmbedder tells texts apart by their lengths.
type fakeEmbedder struct{}

func (fakeEmbedder) Embed(_ context.Context, texts []string, _ embed.Purpose) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = []float32{1, float32(len(text)) / 100}
	}
	return out, nil
}

// bindFake does for a server's store what --embedder does for the command
// line's.
func bindFake(t *testing.T, db *loci.DB) {
	t.Helper()
	_, err := db.Embeddings().RegisterSpace(t.Context(), loci.EmbeddingSpace{ID: "fake", Model: "fake", Dimension: 2})
	if err = errors.Join(err, db.Embeddings().RegisterEmbedder(t.Context(), "fake", fakeEmbedder{}, nil)); err != nil {
		t.Fatal(err)
	}
}

// forget takes out what a process knows and a store does not: the command line
// opens the store for each call anew.
func forget(a answer) answer {
	a.Failure.Message = strings.ReplaceAll(a.Failure.Message, "/cli/", "/http/") // each has its own files
	m, ok := a.Result.(map[string]any)
	if !ok {
		return a
	}
	m = maps.Clone(m)
	for _, name := range []string{"integrity", "integrity_at_us", "processed", "bytes", "journal_length", "last_degraded"} {
		delete(m, name)
	}
	if m["active"] == false {
		delete(m, "total") // of the last rebuild
	}
	return answer{m, a.Failure}
}

func askCLI(t *testing.T, open func(context.Context, string, *loci.Options) (*loci.DB, error), dir string, args []string, code loci.Code) answer {
	t.Helper()
	var out, errOut bytes.Buffer
	got := cli.Run(t.Context(), cli.Deps{
		Args: append([]string{"--data", dir, "--json", "--wait", "0s"}, args...), Open: open,
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errOut,
		LookupEnv: func(string) (string, bool) { return "", false },
		Model: func(string, int) (*cli.Model, error) {
			return &cli.Model{ID: "fake", Title: "a fake", Dimension: 2, Embedder: fakeEmbedder{}}, nil
		},
	})
	want := 0
	if code != "" {
		want = op.ExitCode(code)
	}
	if got != want {
		t.Errorf("loci %s: exit %d, want %d: %s", strings.Join(args, " "), got, want, errOut.String())
	}
	if got == 0 {
		return answer{Result: decode(t, out.Bytes())}
	}
	if out.Len() > 0 {
		t.Errorf("loci %s: an error, and on standard output %s", strings.Join(args, " "), out.String())
	}
	var e struct {
		Error op.Failure `json:"error"`
	}
	if err := json.Unmarshal(errOut.Bytes(), &e); err != nil {
		t.Errorf("loci %s: %v: %s", strings.Join(args, " "), err, errOut.String())
	}
	return answer{Failure: e.Error}
}

func askHTTP(t *testing.T, url string, s sample) answer {
	t.Helper()
	resp, err := http.Post(url+"/v1/"+s.op, "application/json", strings.NewReader(s.input))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode == http.StatusOK {
		return answer{Result: decode(t, raw)}
	}
	var p httpapi.Problem
	if err := json.Unmarshal(raw, &p); err != nil || p.Status != resp.StatusCode || p.Status != op.OutcomeOf(p.Code).Status {
		t.Errorf("%s: %v: %s", s.op, err, raw)
	}
	return answer{Failure: op.Failure{Code: p.Code, Operation: p.Operation, Field: p.Field, Message: p.Detail,
		Reason: p.Reason, Details: p.Details}}
}

// decode keeps number literals, so that equal means equal to the letter.
func decode(t *testing.T, raw []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Errorf("%v: %s", err, raw)
	}
	if _, err := dec.Token(); err != io.EOF {
		t.Errorf("more than one document: %s", raw)
	}
	return v
}

func marshal(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSpace(b.String()), err
}

// squeeze brings a wanted piece of JSON with an object in it into the order in
// which marshal writes it.
func squeeze(t *testing.T, want string) string {
	t.Helper()
	name, obj, ok := strings.Cut(want, ":{")
	if !ok {
		return want
	}
	s, err := marshal(decode(t, []byte("{"+obj)))
	if err != nil {
		t.Fatal(err)
	}
	return name + ":" + s
}
