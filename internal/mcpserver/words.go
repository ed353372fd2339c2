package mcpserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci"
)

// lines are items in words, one in a line, or what is said when there are none.
func lines(list []document, none string, line func(document) string) string {
	if len(list) == 0 {
		return none
	}
	var b strings.Builder
	for i, m := range list {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(line(m))
	}
	return b.String()
}

func sortedNames(m document) []string { return slices.Sorted(maps.Keys(m)) }

// day is the day of m[name], a time in microseconds, or "".
func day(m document, name string) string {
	n, ok := m[name].(json.Number)
	if !ok {
		return ""
	}
	us, err := n.Int64()
	if err != nil {
		return ""
	}
	return time.UnixMicro(us).UTC().Format(time.DateOnly)
}

// about is what stands in brackets behind a record's words.
func about(parts ...string) string {
	var there []string
	for _, p := range parts {
		if p != "" {
			there = append(there, p)
		}
	}
	if len(there) == 0 {
		return ""
	}
	return " (" + strings.Join(there, "; ") + ")"
}

func tagged(m document) string {
	if tags := strs(m, "tags"); len(tags) > 0 {
		return "tags: " + strings.Join(tags, ", ")
	}
	return ""
}

func memoryLine(m document, judgment, kind string) string {
	out := "[" + str(m, "id") + "] " + judgment + about(kind, day(m, "created_at_us"), tagged(m))
	if why := str(m, "reasoning"); why != "" {
		out += " Why: " + why
	}
	return out
}

// recordLine is a record of any kind in words, with the kind and the id that the
// other tools take.
func recordLine(kind string, m document) string {
	head := "[" + kind + " " + str(m, "id") + "] "
	when := day(m, "created_at_us")
	switch kind {
	case "memory":
		return memoryLine(document{"id": kind + " " + str(m, "id"), "created_at_us": m["created_at_us"], "tags": m["tags"], "reasoning": m["reasoning"]},
			str(m, "judgment"), str(m, "memory_type"))
	case "entity":
		return head + str(m, "name") + about(str(m, "entity_type"), alias(m), tagged(m)) + colon(str(m, "summary"))
	case "relation":
		return head + either(str(m, "subject_name"), str(m, "subject_id")) + " " + str(m, "predicate") + " " +
			either(str(m, "object_name"), str(m, "object_id")) + about(when) + colon(str(m, "reason"))
	case "event":
		return head + str(m, "name") + about(when, tagged(m)) + colon(either(str(m, "summary"), str(m, "reason")))
	case "chunk":
		return head + str(m, "content") + about("note "+str(m, "note_id"))
	case "note":
		return head + str(m, "title") + about(str(m, "path"), tagged(m))
	case "episode":
		return head + str(m, "description") + about(day(m, "at_us"), str(m, "thread"), tagged(m))
	case "fact":
		return head + str(m, "content") + about(when, tagged(m))
	}
	for _, name := range []string{"name", "title", "content", "summary", "description"} {
		if v := str(m, name); v != "" {
			return head + v + about(when)
		}
	}
	return head + when
}

func alias(m document) string {
	if names := strs(m, "aliases"); len(names) > 0 {
		return "also " + strings.Join(names, ", ")
	}
	return ""
}

func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// degraded says in words why a search had to do with less.
func degraded(doc document) []string {
	var out []string
	for _, code := range strs(doc, "degraded") {
		out = append(out, "Note: "+degradedWords(loci.Degrade(code)))
	}
	for _, v := range items(doc, "vector_missing") {
		out = append(out, fmt.Sprintf("Note: %v of %v records of the tier %s have no vector yet: found by words only.", v["missing"], v["total"], str(v, "tier")))
	}
	return out
}

func degradedWords(code loci.Degrade) string {
	switch code {
	case loci.DegradeNamespaceDisabled:
		return "vectors are turned off here: found by words only."
	case loci.DegradeNoEmbedder:
		return "there is no embedding model: found by words only."
	case loci.DegradeEmbedFailed:
		return "the embedding model failed: found by words only."
	case loci.DegradeVectorNotReady:
		return "vectors missing: found by words only."
	case loci.DegradeNoSpace:
		return "no embedding model of the stored vectors is at work: found by words only."
	case loci.DegradeRerankFailed:
		return "the reranker failed: the order is the search's own."
	case loci.DegradeTextIndexUnavailable:
		return "the text index is not usable now: what is found may lack much; ask again later."
	}
	return "the search had to do with less: " + string(code) + "."
}
