package eval

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Doc is a document of a set.
type Doc struct {
	ID    string
	Title string
	Text  string
	Date  string // when it was said, in the set's own words
	Scope string // queries of this scope search it; empty: all do
	// Thread is the session it belongs to, with the scope before it
	// ("conv-26/S1"), and Position its place in it, from 1 in the order of the
	// file. Both are zero for a set without sessions.
	Thread   string
	Position int64
	// Sources are the documents that it was made of and stands for; only those of
	// UnitSource have some.
	Sources []string
}

// Content is the text to search: title, text and date, a blank between them.
// The date is content because questions ask for it, and "last week" means
// nothing without it (LoCoMo R@10 0.648 without, 0.667 with it; its place and
// the time of day make no difference).
func (d Doc) Content() string {
	parts := make([]string, 0, 3)
	for _, s := range [...]string{d.Title, d.Text, d.Date} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, " ")
}

// A Query is a question of a set.
type Query struct {
	ID    string
	Text  string
	Scope string // search only documents of this scope; empty: all
	Group string // the kind of question; empty: none
}

// A Set is a task's documents, questions and judgments.
type Set struct {
	Task    string
	Unit    Unit
	Docs    []Doc
	Queries []Query
	// Qrels holds the judgments: query id, then document id (for UnitThread:
	// thread; for UnitSource: source), then relevance; 0 is judged and not relevant.
	Qrels map[string]map[string]int
}

// Relevant gives what is relevant to a query, with its degree; nil if nothing.
func (s *Set) Relevant(query string) map[string]int {
	var out map[string]int
	for id, rel := range s.Qrels[query] {
		if rel > 0 {
			if out == nil {
				out = make(map[string]int, len(s.Qrels[query]))
			}
			out[id] = rel
		}
	}
	return out
}

// Judged gives the queries that have a relevant document, in the order of the
// file. They are the ones that figures are means over.
func (s *Set) Judged() []Query {
	var out []Query
	for _, q := range s.Queries {
		if len(s.Relevant(q.ID)) > 0 {
			out = append(out, q)
		}
	}
	return out
}

// Load reads a task from the folder dir that holds the sets.
//
// A task is a set's name, and perhaps a variant after a colon:
//
//   - "scifact": docs, queries, qrels.
//   - "xquad:zh": docs_zh, queries_zh, qrels_zh_zh; of files with the variant in
//     their name those that exist ("scifact:train" has its own queries and qrels,
//     "notes:cross" and "locomo:audited" only their own qrels).
//   - "xquad:zh-en": queries_zh on docs_en, with qrels_zh_en.
//   - "locomo:turns": the same as "locomo". "locomo:sessions": sessions are
//     ranked instead of documents, and one is relevant when a document of it is;
//     "locomo:audited-sessions" is both.
//   - "locomo:observations": the facts of observations.jsonl are searched instead of
//     the documents, and what they were made of is ranked, judged by the same qrels;
//     "locomo:audited-observations" likewise.
//
// It is strict: what is malformed, named twice or names something unknown is an
// error that says file and line. Extra fields are passed over.
func Load(dir, task string) (*Set, error) {
	f, err := resolve(dir, task)
	if err != nil {
		return nil, err
	}
	s := &Set{Task: task, Unit: f.unit, Qrels: map[string]map[string]int{}}
	judged, docs, err := s.readDocs(f.docs, nil)
	if err != nil {
		return nil, err
	}
	s.Docs = judged
	if s.Unit == UnitSource {
		scopes := make(map[string]string, len(judged))
		for _, d := range judged {
			scopes[d.ID] = d.Scope
		}
		if s.Docs, _, err = s.readDocs(f.facts, scopes); err != nil {
			return nil, err
		}
	}
	queries, err := s.readQueries(f.queries)
	if err != nil {
		return nil, err
	}
	if err := s.readQrels(f.qrels, queries, judged, docs); err != nil {
		return nil, err
	}
	if f.groups != "" {
		if err := s.readGroups(f.groups, queries); err != nil {
			return nil, err
		}
	}
	if len(s.Judged()) == 0 {
		return nil, fmt.Errorf("eval: %s: no query has a relevant document", f.qrels)
	}
	return s, nil
}

// readDocs reads documents, and with the scopes of other documents, by their ids,
// those that were made of them.
func (s *Set) readDocs(file string, scopes map[string]string) (docs []Doc, index map[string]int, err error) {
	index = map[string]int{}
	last := map[string]int64{}
	err = eachLine(file, func(line []byte) error {
		var raw struct {
			ID, Title, Text, Date, Scope string
			Session                      json.RawMessage
			Source                       json.RawMessage
		}
		if err := unmarshal(line, &raw); err != nil {
			return err
		}
		d := Doc{ID: raw.ID, Title: raw.Title, Text: raw.Text, Date: raw.Date, Scope: raw.Scope}
		if err := checkID(d.ID); err != nil {
			return err
		}
		if strings.TrimSpace(d.Title+d.Text) == "" {
			return fmt.Errorf("document %q has neither title nor text", d.ID)
		}
		if _, twice := index[d.ID]; twice {
			return fmt.Errorf("document %q is there twice", d.ID)
		}
		session, err := sessionName(raw.Session)
		if err != nil {
			return err
		}
		if session != "" {
			d.Thread = session
			if d.Scope != "" {
				d.Thread = d.Scope + "/" + session
			}
			last[d.Thread]++
			d.Position = last[d.Thread]
		} else if s.Unit == UnitThread {
			return fmt.Errorf("document %q has no session, so there is nothing to rank sessions by", d.ID)
		}
		if scopes != nil {
			if d.Sources, err = sources(raw.Source, d.Scope, scopes); err != nil {
				return fmt.Errorf("document %q: %w", d.ID, err)
			}
		}
		index[d.ID] = len(docs)
		docs = append(docs, d)
		return nil
	})
	if err == nil && len(docs) == 0 {
		err = fmt.Errorf("eval: %s: no documents", file)
	}
	return docs, index, err
}

// sources reads which documents one of a scope was made of. scopes are those of all
// that there are.
func sources(raw json.RawMessage, scope string, scopes map[string]string) ([]string, error) {
	var ids []string
	if err := json.Unmarshal(raw, &ids); err != nil || len(ids) == 0 {
		return nil, fmt.Errorf("source is %q, want an array of document ids", raw)
	}
	for i, id := range ids {
		of, ok := scopes[id]
		switch {
		case !ok:
			return nil, fmt.Errorf("unknown source %q", id)
		case of != scope:
			return nil, fmt.Errorf("scope %q, and its source %q is of scope %q", scope, id, of)
		case slices.Contains(ids[:i], id):
			return nil, fmt.Errorf("source %q is there twice", id)
		}
	}
	return ids, nil
}

// sessionName gives "S1" for 1, a string as it is, and "" for none.
func sessionName(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	var name string
	if err := json.Unmarshal(raw, &name); err == nil {
		if name != "" {
			err = checkID(name)
		}
		return name, err
	}
	var n int64
	if err := json.Unmarshal(raw, &n); err != nil {
		return "", fmt.Errorf("session is %s, want a whole number or a string", raw)
	}
	return "S" + strconv.FormatInt(n, 10), nil
}

func (s *Set) readQueries(file string) (index map[string]int, err error) {
	index = map[string]int{}
	err = eachLine(file, func(line []byte) error {
		var raw struct{ ID, Text, Scope string }
		if err := unmarshal(line, &raw); err != nil {
			return err
		}
		if err := checkID(raw.ID); err != nil {
			return err
		}
		if strings.TrimSpace(raw.Text) == "" {
			return fmt.Errorf("query %q has no text", raw.ID)
		}
		if _, twice := index[raw.ID]; twice {
			return fmt.Errorf("query %q is there twice", raw.ID)
		}
		index[raw.ID] = len(s.Queries)
		s.Queries = append(s.Queries, Query{ID: raw.ID, Text: raw.Text, Scope: raw.Scope})
		return nil
	})
	if err == nil && len(s.Queries) == 0 {
		err = fmt.Errorf("eval: %s: no queries", file)
	}
	return index, err
}

func (s *Set) readQrels(file string, queries map[string]int, judged []Doc, docs map[string]int) error {
	seen := map[[2]string]bool{}
	return eachLine(file, func(line []byte) error {
		f, err := columns(line, 3)
		if err != nil {
			return err
		}
		q, id := f[0], f[1]
		if _, ok := queries[q]; !ok {
			return fmt.Errorf("unknown query %q", q)
		}
		d, ok := docs[id]
		if !ok {
			return fmt.Errorf("unknown document %q", id)
		}
		rel, err := strconv.Atoi(f[2])
		if err != nil || rel < 0 {
			return fmt.Errorf("relevance %q, want a whole number not below 0", f[2])
		}
		if a, b := s.Queries[queries[q]].Scope, judged[d].Scope; a != "" && b != "" && a != b {
			return fmt.Errorf("query %q of scope %q cannot find document %q of scope %q", q, a, id, b)
		}
		if seen[[2]string{q, id}] {
			return fmt.Errorf("query %q and document %q are judged twice", q, id)
		}
		seen[[2]string{q, id}] = true
		if s.Unit == UnitThread {
			id = judged[d].Thread
		}
		if s.Qrels[q] == nil {
			s.Qrels[q] = map[string]int{}
		}
		s.Qrels[q][id] = max(s.Qrels[q][id], rel)
		return nil
	})
}

func (s *Set) readGroups(file string, queries map[string]int) error {
	return eachLine(file, func(line []byte) error {
		f, err := columns(line, 2)
		if err != nil {
			return err
		}
		q, ok := queries[f[0]]
		if !ok {
			return fmt.Errorf("unknown query %q", f[0])
		}
		if s.Queries[q].Group != "" {
			return fmt.Errorf("query %q has a group already", f[0])
		}
		s.Queries[q].Group = f[1]
		return nil
	})
}
