package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAgentModel holds when an operation on agent memory needs the embedder, which
// takes time to load.
func TestAgentModel(t *testing.T) {
	for _, tt := range []struct {
		op, in string
		want   modelUse
	}{
		{"facts.store", `{"id":1,"content":"x"}`, modelNeeded},
		{"facts.store", `{"id":1,"content":"x","embedding":[1]}`, modelUnused},
		{"facts.store_unique", `{"id":1,"content":"x"}`, modelNeeded},
		{"facts.store_batch", `{"facts":[{"embedding":[1]},{}]}`, modelNeeded},
		{"facts.store_batch", `{"facts":[{"embedding":[1]},{"embedding":[1]}]}`, modelUnused},
		{"facts.store_batch", `{"facts":[]}`, modelUnused},
		{"facts.query", `{"embedding":[1]}`, modelUnused},
		{"facts.query_text", `{"text":"x"}`, modelReads},
		{"facts.update_metadata", `{"id":1,"updates":{"content":"x"}}`, modelHelps},
		{"facts.update_metadata", `{"id":1,"updates":{"k":"x"}}`, modelUnused},
		{"episodes.update_metadata", `{"id":1,"updates":{"content":"x"}}`, modelUnused},
		{"facts.get", `{"id":1}`, modelUnused},
		{"episodes.record", `{"id":1,"description":"x"}`, modelHelps},
		{"episodes.record", `{"id":1,"description":"x","embedding":[1]}`, modelUnused},
		{"episodes.record_batch", `{"episodes":[{}]}`, modelHelps},
		{"episodes.import", `{"path":"x"}`, modelHelps},
		{"episodes.recall_similar", `{"text":"x"}`, modelReads},
		{"episodes.recall_similar", `{"embedding":[1]}`, modelUnused},
		{"procedures.learn", `{"id":1,"name":"x","steps":["y"]}`, modelHelps},
		{"procedures.recall", `{"text":"x"}`, modelReads},
		{"procedures.reinforce", `{"id":1,"success":true}`, modelUnused},
		{"agent.open", `{}`, modelPlaces},
		{"agent.open", `{"dimension":3}`, modelPlaces},
		{"agent.set_policy", `{"keep_versions":3}`, modelPlaces},
		{"agent.status", `{}`, modelShows},
		{"agent.snapshot", `{}`, modelUnused},
		{"agent.restore", `{}`, modelPlaces},
		{"facts.serialize", `{"path":"x"}`, modelUnused},
		{"facts.deserialize", `{"path":"x"}`, modelNeeded},
		{"recall", `{"query":"x"}`, modelUnused},
		{"context.recall", `{"text":"x"}`, modelUnused},
		{"facts.store", `not JSON`, modelUnused},
	} {
		if got := agentModel(tt.op, []byte(tt.in)); got != tt.want {
			t.Errorf("%s %s: %d, want %d", tt.op, tt.in, got, tt.want)
		}
	}
}

// TestAgentForPeople holds what a person sees of agent memory.
func TestAgentForPeople(t *testing.T) {
	s := sea{t: t, dir: t.TempDir(), deps: with(seaModel{})}
	for _, step := range []struct {
		args string // words apart by |
		want []string
	}{
		{"agent|status", []string{"Agent memory default/public: nothing is stored yet"}},
		{"facts|list", []string{"There are no facts here"}},
		{"facts|get|7", []string{"There is no fact under that id"}},
		{"facts|history|7", []string{"There is nothing under that id"}},
		{"facts|query-text|tide", []string{"Nothing was found"}},
		{"facts|delete|7", []string{"There was nothing to delete"}},
		{"facts|store|--id|7|The tide table|is updated weekly.|--tags|Tide,harbour|--metadata|{\"k\":1.50}", []string{"Fact 7 stored, version 1\n"}},
		{"facts|store|--id|18446744073709551615|Lamps are lit at seven.|--ttl-seconds|18446744073709551615", []string{"Fact 18446744073709551615 stored"}},
		{"facts|store-unique|--id|7|A boat came.", []string{"Fact 0 stored"}},
		{"facts|store|--id|9|gone|--ttl-seconds|0", []string{"Nothing is stored as fact 9"}},
		{"facts|store-batch|{\"facts\":[{\"id\":3,\"content\":\"a\"},{\"id\":3,\"content\":\"b\"},{\"id\":4,\"content\":\"c\",\"ttl_seconds\":0}]}", []string{"1 fact stored, 1 removed, 1 entry of an id that a later one has"}},
		{"facts|count", []string{"4 facts"}},
		{"facts|list|--limit|2", []string{"ID  RECORDED", "A boat came.", "There are more: --cursor 3"}},
		{"facts|get|7", []string{"The tide table is updated weekly.\n", "tags      harbour, tide", `metadata  {"k":1.50}`, "version 1"}},
		{"facts|get|18446744073709551615|--with-embedding", []string{"expires   never, or nearly so", "vector    2 numbers"}},
		{"facts|query-text|船|--k|2", []string{"ID  SCORE", "The tide table", "A boat came."}},
		{"facts|query|--embedding|[1,0.1]|--k|1", []string{"1.000"}},
		{"search|tide|--kinds|fact", []string{"The tide table is updated weekly.", "harbour, tide · id 7 · score"}},
		{"facts|update-metadata|7|--updates|{\"content\":\"The tide table is updated daily.\"}", []string{"Fact 7 updated, version 2\n"}},
		{"facts|history|7", []string{"VERSION  BELIEVED FROM", "now", "updated weekly."}},
		{"facts|set-ttl|3|--ttl-seconds|60", []string{"Fact 3 updated, version 1\n"}},
		{"facts|set-ttl|3|--ttl-seconds|0", []string{"Nothing is stored as fact 3"}},
		{"facts|clear-ttl|18446744073709551615", []string{"updated, version 1"}},
		{"facts|relate|7|comes before|18446744073709551615|--properties|{\"by\":\"an hour\"}", []string{"Relation ", ": fact 7 -[comes before]-> fact 18446744073709551615"}},
		{"facts|relations|7", []string{"RELATION", "fact 7  comes before  fact 18446744073709551615", `{"by":"an hour"}`}},
		{"facts|incoming-relations|7", []string{"There are no relations here"}},
		{"facts|match|comes before", []string{"CONTENT", "Lamps are lit at seven."}},
		{"facts|match|causes", []string{"Nothing was found"}},
		{"facts|supersede|0|7|--from-us|1000000", []string{"Fact 0 holds until 1970-01-01T00:00:01Z, fact 7 from 1970-01-01T00:00:01Z on"}},
		{"facts|get|0", []string{"holds until  1970-01-01T00:00:01Z"}},
		{"episodes|record|--id|1|The boat was late.|--at-us|1500000|--thread|watch|--position|3", []string{"Episode 1 stored, version 1\n"}},
		{"episodes|recent", []string{"HAPPENED", "1970-01-01T00:00:01.500000Z  watch   The boat was late."}},
		{"episodes|get|1", []string{"happened  1970-01-01T00:00:01.500000Z", "thread    watch, position 3"}},
		{"episodes|recall-similar|tide", []string{"SCORE", "The boat was late."}},
		{"search|boat|--kinds|episode", []string{"The boat was late.", "id 1 · 1970-01-01T00:00:01.500000Z"}},
		{"episodes|list|--limit|1", []string{"The boat was late."}},
		{"procedures|list", []string{"There are no procedures here"}},
		{"procedures|learn|--id|1|Light the lamp|--steps|Trim the wick, gently.|--steps|Light it.", []string{"Procedure 1 stored, version 1\n"}},
		{"procedures|get|1", []string{"Light the lamp\n  1. Trim the wick, gently.\n  2. Light it.\n", "confidence  0.500", "served      0 of 0 times"}},
		{"procedures|reinforce|1|--success", []string{"Procedure 1: confidence 0.600, served 1 of 1 time\n"}},
		{"procedures|recall|lamp", []string{"CONFIDENCE", "0.600       1/1     2      Light the lamp"}},
		{"procedures|list", []string{"0.600"}},
		{"search|wick|--kinds|procedure", []string{"Light the lamp\n  Trim the wick, gently.; Light it.\n", "id 1 · score"}},
		{"procedures|history|1", []string{"Light the lamp: Trim the wick, gently.; Light it."}},
		{"agent|status", []string{"vectors of 2 numbers, in the space sea 1", "3 facts, 1 episode, 1 procedure", "no snapshots", "earlier versions kept  10"}},
		{"agent|snapshots", []string{"There are no snapshots: loci agent snapshot takes one"}},
		{"agent|snapshot", []string{"Snapshot 1: 3 facts, 1 episode, 1 procedure, 2 relations, 3 earlier versions, "}},
		{"agent|snapshots", []string{"VERSION  TAKEN", "3 facts"}},
		{"agent|set-policy|--consolidate-after-seconds|60|--evict-below-confidence|0.9|--keep-versions|0|--max-snapshots|1",
			[]string{"episodes become facts  after 1m0s", "procedures go          below a confidence of 0.9, once used", "earlier versions kept  0", "snapshots kept         1"}},
		{"agent|policy", []string{"snapshots kept         1"}},
		{"agent|auto-expire", []string{"0 expired, 1 episode became facts, 1 procedure and 3 earlier versions removed"}},
		{"agent|snapshot", []string{"Snapshot 2: 4 facts", "Snapshot 1 went: the policy keeps no more"}},
		{"facts|serialize|{dir}/facts.loci", []string{"Wrote 4 facts, ", " bytes, at revision "}},
		{"facts|clear|--all", []string{"4 facts deleted"}},
		{"facts|deserialize|{dir}/facts.loci", []string{"Restored 4 facts"}},
		{"agent|restore", []string{"Restored 4 facts", "from snapshot 2"}},
		{"agent|open", []string{"Agent memory default/public: vectors of 2 numbers, in the space sea 1"}},
		{"facts|delete|7", []string{"Deleted"}},
	} {
		args := strings.Split(strings.ReplaceAll(step.args, "{dir}", filepath.ToSlash(s.dir)), "|")
		got := s.run(0, args...)
		contains(t, got.stdout, step.want...)
		if got.stderr != "" {
			t.Errorf("loci %s: %s", step.args, got.stderr)
		}
	}
}

// TestAgentInput holds where an input comes from, and which memory is meant.
func TestAgentInput(t *testing.T) {
	dir := t.TempDir()
	run := func(env map[string]string, stdin string, args ...string) outcome {
		t.Helper()
		return cmdLine{env: env, stdin: stdin, args: append([]string{"--data", dir, "--embedder", "none"}, args...)}.run(t)
	}
	crew := map[string]string{"LOCI_NAMESPACE": "harbour", "LOCI_SCOPE": "crew"}
	for _, tt := range []struct {
		env   map[string]string
		stdin string
		args  string
		want  string // part of what is said
		code  int
	}{
		{crew, "From standard input.\n", "facts store --id 7 --embedding [1,0] -", "Fact 7 stored", 0},
		{crew, `{"id":8,"content":"x","embedding":[0,1]}`, "facts store --input -", "Fact 8 stored", 0},
		{crew, "", "facts get 7 --json", `"scope":"crew"`, 0},
		{crew, "", "facts get 7 --json", `"namespace":"harbour"`, 0},
		{crew, "", "facts get 7 --json", `"content":"From standard input."`, 0},
		{crew, "", "facts get 7 --json --scope public", `"point":null`, 0},
		{crew, "", `facts get --input {"id":7,"scope":"public"} --json`, `"point":null`, 0},
		{crew, "", `facts get --input {"id":7,"scope":"public"} --json --scope crew`, `"scope":"crew"`, 0},
		{crew, "", `call facts.get {"id":7}`, "From standard input.", 0},
		{crew, "", "facts count --scope a --scope b", "a memory has one scope", 2},
		{crew, "", "facts count --scope", "flag needs an argument", 2},
		{crew, "", "facts clear", "namespace: is needed", 2},
		{crew, "", "facts clear --scope crew", "namespace: is needed", 2},
		{crew, "", "facts clear --scope crew --namespace harbour", "2 facts deleted", 0},
		{crew, "", "facts clear --all", "0 facts deleted", 0},
		{nil, "", "facts store x --embedding [1]", "id: is missing", 2},
		{nil, "", "facts store --id x1 x --embedding [1]", "id: must be an id", 2},
		{nil, "", "facts store --id 1 x --embedding [1", "--embedding takes JSON", 2},
		{nil, "", "facts store --id 1 x --ttl-seconds -1", "invalid argument", 2},
		{nil, "", "facts store --id 1", "CONTENT is missing", 2},
		{nil, "", "facts get 18446744073709551616", "id: must be an id", 2},
		{nil, "", "episodes recall-similar", "embedding", 2},
		{nil, "", "episodes recall-similar --embedding [1,0]", "Nothing was found", 0},
		{nil, "", "facts store --id 1 x", "give a vector, or register an embedder", 1},
	} {
		got := run(tt.env, tt.stdin, strings.Fields(tt.args)...)
		if got.code != tt.code || !strings.Contains(got.stdout+got.stderr, tt.want) {
			t.Errorf("loci %s: exit %d: %s%s", tt.args, got.code, got.stdout, got.stderr)
		}
	}
}

// TestAgentWithoutModel holds what becomes of writes and queries when the model
// fails.
func TestAgentWithoutModel(t *testing.T) {
	s := sea{t: t, dir: t.TempDir(), deps: with(seaModel{})}
	broken := s
	broken.deps = with(seaModel{err: errors.New("the sea is closed")})

	// Nothing can be stored of which nobody knows what its vectors are.
	got := broken.run(2, "facts", "store", "--id", "1", "The tide is out.")
	contains(t, got.stderr, "the sea is closed")

	s.run(0, "facts", "store", "--id", "1", "The tide is out.")
	contains(t, broken.run(0, "facts", "query-text", "tide").stdout, "The tide is out.")
	contains(t, broken.run(0, "episodes", "record", "--id", "1", "A boat came.").stderr, "the sea is closed")
	s.run(0, "embeddings", "sync")
	contains(t, s.run(0, "embeddings", "status").stdout, "agent   2        2        complete")

	// A memory with vectors of the caller's has nothing to do with the model.
	s.run(0, "facts", "store", "--scope", "own", "--id", "1", "A boat came.", "--embedding", "[1,0,0]")
	got = broken.run(0, "facts", "query-text", "--scope", "own", "boat")
	contains(t, got.stdout, "A boat came.")
	if got.stderr != "" {
		t.Error(got.stderr)
	}
	contains(t, s.run(1, "facts", "store", "--scope", "own", "--id", "2", "The tide is in.").stderr, "no embedder is registered for the space")
}

// TestAgentPlaces holds in which space a memory is made whose dimension is given, and
// that its status tells of the embedder.
func TestAgentPlaces(t *testing.T) {
	s := sea{t: t, dir: t.TempDir(), deps: with(seaModel{})}
	broken := s
	broken.deps = with(seaModel{err: errors.New("the sea is closed")})
	contains(t, broken.run(0, "agent", "open", "--scope", "odd", "--dimension", "3").stdout, "in the space agent-3")
	contains(t, broken.run(2, "agent", "open", "--dimension", "2").stderr, "the sea is closed")
	contains(t, s.run(0, "agent", "status", "--json").stdout, `"embedder":false`)
	contains(t, s.run(0, "agent", "open", "--dimension", "2").stdout, "in the space sea 1")
	contains(t, s.run(0, "agent", "status", "--json").stdout, `"embedder":true`)
	contains(t, s.run(0, "agent", "status", "--scope", "odd", "--json").stdout, `"embedder":false`)
	contains(t, broken.run(0, "agent", "status", "--json").stdout, `"embedder":false`)
	contains(t, broken.run(0, "agent", "status").stderr, "without its embedder: ", "the sea is closed")
	contains(t, s.run(0, "agent", "open", "--scope", "bare", "--dimension", "2", "--embedder", "none").stdout, "in the space agent-2")
}

// TestAgentImportForPeople holds what an import tells.
func TestAgentImportForPeople(t *testing.T) {
	s := sea{t: t, dir: t.TempDir(), deps: with(seaModel{})}
	file := filepath.Join(s.dir, "talk.jsonl")
	s.env = map[string]string{"LOCI_SCOPE": "log"}
	const talk = `{"thread":"a","role":"user","text":"Is the lamp lit?"}
{"thread":"a","role":"assistant","text":"It is."}
{"thread":"b","role":"user","text":""}
`
	if err := os.WriteFile(file, []byte(talk), 0o600); err != nil {
		t.Fatal(err)
	}
	contains(t, s.run(0, "episodes", "import", file, "--dry-run").stdout, "Would import 2 messages of", "2 new, 0 updated, 0 unchanged", "left out: empty 1")
	got := s.run(0, "episodes", "import", file)
	contains(t, got.stdout, "Imported 2 messages", "2 new, 0 updated, 0 unchanged", "1 conversation has no message", "2 without a time")
	contains(t, s.run(0, "episodes", "import", file, "--quiet").stdout, "0 new, 0 updated, 2 unchanged")
	contains(t, s.run(0, "embeddings", "status").stdout, "agent   2        2        complete")
	contains(t, s.run(2, "episodes", "import", s.dir).stderr, "must name a file")
}

// TestAgentDeserializeElsewhere holds that a memory that a file makes lies in the space
// of the embedder in force, as any other new one, so that texts are made vectors there.
func TestAgentDeserializeElsewhere(t *testing.T) {
	s := sea{t: t, dir: t.TempDir(), deps: with(seaModel{})}
	file := filepath.Join(s.dir, "facts.loci")
	s.run(0, "facts", "store", "--id", "7", "The tide table is updated weekly.")
	s.run(0, "facts", "serialize", file)
	s.env = map[string]string{"LOCI_SCOPE": "elsewhere"}
	contains(t, s.run(0, "facts", "deserialize", file).stdout, "Restored 1 fact")
	contains(t, s.run(0, "agent", "status").stdout, "in the space sea 1")
	contains(t, s.run(0, "facts", "store", "--id", "8", "A boat came.").stdout, "Fact 8 stored")
	got := s.run(0, "facts", "query-text", "tide")
	if contains(t, got.stdout, "The tide table"); got.stderr != "" {
		t.Error(got.stderr)
	}

	s.env = map[string]string{"LOCI_SCOPE": "third"}
	s.deps = with(seaModel{err: errors.New("it is out of order")})
	contains(t, s.run(2, "facts", "deserialize", file).stderr, "it is out of order")
	contains(t, s.run(0, "--embedder", "none", "facts", "deserialize", file).stdout, "Restored 1 fact")
	contains(t, s.run(0, "agent", "status").stdout, "in the space agent-2")
}

// TestAgentDoctor holds that nobody is told to delete vectors that nothing can make
// again.
func TestAgentDoctor(t *testing.T) {
	s := sea{t: t, dir: t.TempDir(), deps: with(seaModel{})}
	s.run(0, "facts", "store", "--id", "1", "The tide is in.", "--embedding", "[1,0,0]")
	for _, embedder := range []string{"builtin", "none"} {
		got := s.run(0, "doctor", "--embedder", embedder).stdout
		contains(t, got, "space agent-3 holds vectors that agent memories were given")
		if strings.Contains(got, "delete-space") {
			t.Errorf("with the embedder %s: %s", embedder, got)
		}
	}
}

// TestAgentFlagErrors holds that a flag of the wrong form is told with the command that
// has it.
func TestAgentFlagErrors(t *testing.T) {
	s := sea{t: t, dir: t.TempDir(), deps: with(seaModel{})}
	for _, args := range []string{
		"facts|store|x|--id|1|--metadata|{bad", "procedures|recall|x|--min-confidence|NaN", "procedures|learn|x|--id|1|--steps|a|--confidence|-Inf",
	} {
		words := strings.Split(args, "|")
		contains(t, s.run(2, words...).stderr, "and this is none", "Run 'loci "+words[0]+" "+words[1]+" --help'")
	}
}
