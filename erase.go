package loci

import (
	"context"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/valid"
)

// EraseRequest says what is to be forgotten. Filter says where to look, and what its
// other conditions leave out stays. Subject, IDs and Mentions pick records of that;
// with none of them all of it goes. A list that is there and empty is refused, for it
// is seldom meant to pick everything. With a filter of namespace and scopes alone that
// is the scopes as a whole: their contexts and agent memories too, and with EveryScope
// what is set of the namespace.
type EraseRequest struct {
	// Filter covers records of every kind, unless Kinds says otherwise. A scope may be
	// that of a context: a JSON array of its parts.
	Filter ReadFilter `json:"filter,omitzero"`
	// EveryScope looks in all scopes of the namespace. Filter.Scopes must be nil then.
	EveryScope bool `json:"every_scope,omitempty"`
	// Subject is a person or a thing: the name of entities, an alias of theirs, or the
	// id of one. They go with every relation and event that they stand in. Nil picks by
	// no subject; an empty one is refused.
	Subject *string `json:"subject,omitempty"`
	// IDs are records, at most 10000. A chunk goes with its whole note, since a note
	// without it would not be the file.
	IDs []ID `json:"ids,omitempty"`
	// Mentions are words to look for in every text there is, of earlier versions too:
	// 1 to 64, none blank. With a Subject its name and aliases are looked for as well.
	// What mentions one of them is counted, and stays.
	Mentions []string `json:"mentions,omitempty"`
	// EraseMentions erases what mentions one of the words too.
	EraseMentions bool `json:"erase_mentions,omitempty"`
	DryRun        bool `json:"dry_run,omitempty"` // count only
}

// EraseReport is the receipt of an erasure: what went, or with DryRun would go, what
// still mentions the words, and what an erasure cannot reach.
type EraseReport struct {
	DryRun   bool  `json:"dry_run,omitempty"`
	Revision int64 `json:"revision"` // of the store, after it
	Total    int64 `json:"total"`    // records of all kinds
	// Records are those that went, by kind. Pages are counted with those that were
	// copies of what went, wherever they lay.
	Records map[Kind]int64 `json:"records"`
	// What went with them.
	PageRevisions  int64 `json:"page_revisions"`  // all, the current ones included
	PointVersions  int64 `json:"point_versions"`  // earlier versions of facts, episodes, procedures
	PointRelations int64 `json:"point_relations"` // relations between these
	Vectors        int64 `json:"vectors"`
	// Evidence are pieces of evidence in other records that came from chunks that went.
	Evidence int64 `json:"evidence"`
	// Contexts and AgentMemories are those that went as a whole.
	Contexts      int64 `json:"contexts"`
	AgentMemories int64 `json:"agent_memories"`
	// PublishedTexts are texts, kept for prompt caches, that went or were cut off
	// before the first page that went. Checkpoints went, or lost pages.
	PublishedTexts int64 `json:"published_texts"`
	Checkpoints    int64 `json:"checkpoints"`
	LogEntries     int64 `json:"log_entries"` // of contexts, that went or lost the name of a page
	Settings       int64 `json:"settings"`    // of the namespace
	// Snapshots of agent memories in the data directory.
	SnapshotsRewritten int64 `json:"snapshots_rewritten"`
	SnapshotsRemoved   int64 `json:"snapshots_removed"`
	JournalRows        int64 `json:"journal_rows"` // of the indexes' journal
	Strings            int64 `json:"strings"`      // of the dictionary, that nothing uses any more
	// Mentioned counts the records left that mention a word, by kind; MentionedIDs are
	// the first 100 of them.
	Mentioned    map[Kind]int64 `json:"mentioned"`
	MentionedIDs []ID           `json:"mentioned_ids"`
	// NoteFiles are paths of notes that went, as far as they are known: the first 100.
	// The files are there.
	NoteFiles []string `json:"note_files"`
	// NotReached are places where what was erased may still stand.
	NotReached []NotReached `json:"not_reached"`
}

// NotReached is a place that an erasure or a vacuum leaves as it is.
type NotReached struct {
	What string `json:"what"`           // for programs: one of the words below
	Says string `json:"says"`           // for people: what it is, and what to do
	File string `json:"file,omitempty"` // where, if that is known
}

// The places that are not reached.
const (
	UnreachedBackups    = "backups"        // files of Backup
	UnreachedExports    = "exports"        // files of Export, serialized memories
	UnreachedMigration  = "migration_copy" // a copy of the database from before a migration
	UnreachedSnapshot   = "snapshot"       // of an agent memory, that cannot be read
	UnreachedNoteFiles  = "note_files"     // the user's own
	UnreachedFreePages  = "free_pages"     // of the database and its log, until Vacuum
	UnreachedIndexFiles = "index_files"    // until they are merged, or Vacuum
	UnreachedProcesses  = "processes"      // what others have read, and this one's memory
	UnreachedMentions   = "mentions"       // records that mention the words
)

const (
	maxEraseIDs      = 10000
	maxMentions      = 64
	maxMentionedIDs  = 100
	maxNoteFilesTold = 100
)

// Erase forgets records of every kind with all that was kept of them: earlier
// versions, pages that are copies, texts published for prompt caches, checkpoints,
// snapshots of agent memories, vectors, evidence taken from them, and words of the
// dictionary that nothing else uses. The receipt counts it and names what it cannot
// reach. Admin is needed.
//
// It works in short transactions, so others wait for none of it long and never see
// half a record. When it fails or its process dies, what went is gone, and the same
// request again goes on. What is written meanwhile may stay. The bytes are gone from
// the files after Vacuum.
//
// progress, if there is one, is told how many records of how many are gone.
func (db *DB) Erase(ctx context.Context, req EraseRequest, progress ...func(done, total int64)) (*EraseReport, error) {
	const op = "erase"
	e := db.eng
	if err := e.enter(op); err != nil {
		return nil, err
	}
	defer e.gate.leave()
	if err := needAdmin(ctx, "", "an erasure"); err != nil {
		return nil, errs.WithOp(op, err)
	}
	ctx, stop := e.untilClosing(unrestricted(ctx))
	defer stop()
	what, err := req.check(ctx)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	report, err := e.erase(ctx, what, tell(progress))
	return report, errs.WithOp(op, err)
}

// eraseWhat is an EraseRequest that was checked.
type eraseWhat struct {
	filter   *readFilter
	every    bool // scope of the namespace
	subject  string
	ids      map[int64]bool
	words    []string // normalised
	mentions bool     // are erased
	dryRun   bool
}

// check validates the request.
func (req *EraseRequest) check(ctx context.Context) (*eraseWhat, error) {
	f := req.Filter
	if req.EveryScope && f.Scopes != nil {
		return nil, errs.Invalid("every_scope", "goes with no filter.scopes: name the scopes, or take all of them")
	}
	if f.Scopes != nil {
		canonical := make([]string, len(f.Scopes))
		for i, scope := range f.Scopes {
			canonical[i] = contextScope(scope)
		}
		f.Scopes = canonical
	}
	if err := f.checkLists("filter."); err != nil {
		return nil, err
	}
	filter, err := f.check(ctx, "filter.")
	if err != nil {
		return nil, err
	}
	w := &eraseWhat{filter: filter, every: req.EveryScope, mentions: req.EraseMentions, dryRun: req.DryRun}
	if req.Subject != nil {
		if err := valid.Label("subject", *req.Subject, MaxNameBytes); err != nil {
			return nil, err
		}
		w.subject = *req.Subject
	}
	switch {
	case emptyList(req.IDs):
		return nil, refuseEmpty("ids")
	case emptyList(req.Mentions):
		return nil, refuseEmpty("mentions")
	}
	if len(req.IDs) > maxEraseIDs {
		return nil, errs.Invalid("ids", "has %d entries, at most %d are allowed", len(req.IDs), maxEraseIDs)
	}
	for _, id := range req.IDs {
		if id < 1 {
			return nil, errs.Invalid("ids", "must be above 0, not %d", id)
		}
		if w.ids == nil {
			w.ids = map[int64]bool{}
		}
		w.ids[int64(id)] = true
	}
	if len(req.Mentions) > maxMentions {
		return nil, errs.Invalid("mentions", "has %d entries, at most %d are allowed", len(req.Mentions), maxMentions)
	}
	for _, word := range req.Mentions {
		if len(word) > MaxNameBytes {
			return nil, errs.Invalid("mentions", "has a word of %d bytes, at most %d are allowed", len(word), MaxNameBytes)
		}
		if word = normalize(word); word == "" {
			return nil, errs.Invalid("mentions", "must not be blank")
		}
		w.words = append(w.words, word)
	}
	if w.mentions && w.subject == "" && len(w.words) == 0 {
		return nil, errs.Invalid("erase_mentions", "needs a subject or mentions to look for")
	}
	return w, nil
}

// picks says whether only some records of what the filter covers are meant.
func (w *eraseWhat) picks() bool { return w.subject != "" || w.ids != nil || len(w.words) > 0 }

// whole says whether scopes, or the namespace, go as a whole.
func (w *eraseWhat) whole() bool {
	f := w.filter
	return !w.picks() && len(f.kinds) == 0 && len(f.noteIDs) == 0 && len(f.where) == 0 && len(f.Tags) == 0 && f.Thread == "" && f.From == nil && f.To == nil
}
