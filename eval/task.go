package eval

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Unit is what a task ranks.
type Unit string

// The units.
const (
	UnitDocument Unit = "document" // the set's documents
	UnitThread   Unit = "thread"   // sessions, by their Doc.Thread
	UnitSource   Unit = "source"   // what the documents were made of, by their Doc.Sources
)

// Tasks gives the tasks that are measured by habit, in a fixed order. Load
// takes others too.
func Tasks() []string {
	return []string{
		"scifact", "cmrc2018", "xquad:zh", "xquad:en", "xquad:zh-en", "xquad:en-zh", "2wiki", "notes", "notes:cross",
		"locomo:turns", "locomo:sessions", "locomo:observations",
	}
}

// files are where a task's parts lie; groups may be missing, and facts are those
// of UnitSource.
type files struct {
	docs, queries, qrels, groups, facts string
	unit                                Unit
}

// resolve finds a task's files. See Load for the rules.
func resolve(dir, task string) (files, error) {
	name, variant, _ := strings.Cut(task, ":")
	if !plainName(name) || variant != "" && !plainName(variant) || strings.HasSuffix(task, ":") {
		return files{}, fmt.Errorf("eval: task %q: want a set's name, and perhaps a variant after a colon, of small letters, digits, _ and -", task)
	}
	folder := filepath.Join(dir, name)
	if st, err := os.Stat(folder); err != nil || !st.IsDir() {
		return files{}, fmt.Errorf("eval: task %q: no set %q in %s", task, name, dir)
	}
	f := files{unit: UnitDocument}
	if v, ok := cutWord(variant, "sessions"); ok {
		f.unit, variant = UnitThread, v
	} else if v, ok := cutWord(variant, "observations"); ok {
		f.unit, variant = UnitSource, v
		f.facts = filepath.Join(folder, "observations.jsonl")
	} else if variant == "turns" {
		variant = ""
	}
	used := variant == ""
	pick := func(ext string, stems ...string) string {
		for _, stem := range stems {
			p := filepath.Join(folder, stem+ext)
			if exists(p) {
				used = used || strings.Contains(stem, "_")
				return p
			}
		}
		return filepath.Join(folder, stems[len(stems)-1]+ext) // named when it cannot be opened
	}
	from, to, cross := strings.Cut(variant, "-")
	switch {
	case variant == "":
		f.docs, f.queries, f.qrels = pick(".jsonl", "docs"), pick(".jsonl", "queries"), pick(".tsv", "qrels")
	case cross:
		f.docs, f.queries, f.qrels = pick(".jsonl", "docs_"+to), pick(".jsonl", "queries_"+from), pick(".tsv", "qrels_"+from+"_"+to)
	default:
		f.docs = pick(".jsonl", "docs_"+variant, "docs")
		f.queries = pick(".jsonl", "queries_"+variant, "queries")
		f.qrels = pick(".tsv", "qrels_"+variant+"_"+variant, "qrels_"+variant, "qrels")
	}
	if !used {
		return files{}, fmt.Errorf("eval: task %q: set %q has no variant %q", task, name, variant)
	}
	if p := filepath.Join(folder, "groups.tsv"); exists(p) {
		f.groups = p
	}
	return f, nil
}

// cutWord takes the last word off a variant, which hyphens separate from others.
func cutWord(variant, word string) (before string, ok bool) {
	before, ok = strings.CutSuffix(variant, word)
	if !ok || before == "" {
		return before, ok
	}
	before, ok = strings.CutSuffix(before, "-")
	return before, ok && before != ""
}

func exists(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().Type()&fs.ModeType == 0
}

// plainName keeps a task from naming files elsewhere.
func plainName(s string) bool {
	if s == "" {
		return false
	}
	for _, c := range s {
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}
