package op

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/foreign"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/strictjson"
)

// ImportSource names the memory that is imported.
type ImportSource string

// ImportUsers says what becomes of the users whose memories a source tells apart.
type ImportUsers string

// The ways to keep users apart.
const (
	usersInScopes ImportUsers = "scopes" // each in a scope of his own, "user:NAME"
	usersInTags   ImportUsers = "tags"   // all in one scope, with the tag "user:NAME"
)

// ImportFrom says what to import, and where to put it.
type ImportFrom struct {
	// From is the memory that it comes from: mcp-memory (the file of the official
	// memory server), mem0 (JSON of get_all), basic-memory (its folder), p-memory (its
	// data directory), markdown (a file or a folder) or jsonl (one JSON value a line).
	From ImportSource `json:"from"`
	Path string       `json:"path"` // the file or folder
	// Namespace is where all of it goes; left out, "default", or the namespaces that
	// the source itself has.
	Namespace *string `json:"namespace,omitempty"`
	// Scope is where all of it goes; left out, "public", or the scopes that the source
	// itself has.
	Scope *string `json:"scope,omitempty"`
	// Users says what becomes of users, where the source has several: scopes puts each
	// into a scope of its own, "user:NAME"; tags puts all into one scope and tags each
	// memory with "user:NAME".
	Users  ImportUsers `json:"users,omitempty"`
	DryRun bool        `json:"dry_run,omitempty"` // tell what would be done, and write nothing
}

// ImportedFrom says what an import did, or would do. Everything that was found is
// created, merged, replaced, unchanged or left out.
type ImportedFrom struct {
	From     ImportSource            `json:"from"`
	File     string                  `json:"file"` // name of what was read, without its folder
	DryRun   bool                    `json:"dry_run"`
	Kinds    map[string]*ImportTally `json:"kinds"` // memory, entity, relation, event, fact, episode, note, setting, and what else was met
	LeftOut  []ImportLeftOut         `json:"left_out"`
	Unlisted int64                   `json:"unlisted"` // left out beyond those that are listed
	Users    []string                `json:"users"`    // whose memories they are, where the source says so
	Remarks  []string                `json:"remarks"`  // what else there is to know
	Revision int64                   `json:"revision"` // of the store afterwards
}

// ImportTally counts what became of the pieces of a kind.
type ImportTally struct {
	Found     int64 `json:"found"`
	Created   int64 `json:"created"`
	Merged    int64 `json:"merged"`    // added to what was there
	Replaced  int64 `json:"replaced"`  // had changed at the source since it was imported
	Unchanged int64 `json:"unchanged"` // was there as it is
	LeftOut   int64 `json:"left_out"`
}

// ImportLeftOut is a piece that was left out, and why.
type ImportLeftOut struct {
	Where  string `json:"where"`           // file and line, or another place in the source
	Kind   string `json:"kind"`            // what it would have become
	Field  string `json:"field,omitempty"` // what is wrong with it
	Reason string `json:"reason"`
}

func importOps() []*Operation {
	return []*Operation{
		Define(Spec{
			Name:    "import_from",
			Summary: "Bring in what another memory keeps",
			Description: "The whole source is read and checked first. What cannot be carried over is left out and listed with its place and the reason; all else is written in batches. " +
				"What was imported before is known again, so the same import changes nothing, one that was ended half-way is completed by another, and a newer export adds what is new. " +
				"Nothing that is there is taken away or overwritten, except for the text of a memory that changed at its source and not here. With dry_run nothing is written and the answer is the same." + absolutePaths,
			Positional: []string{"from", "path"},
			LocalPaths: []string{"path"},
			Idempotent: true, LongRunning: true, Admin: true,
			Covers: []string{"DB.Adopt"},
		}, importFrom),
	}
}

// importTypes are the closed sets of words of imports.
func importTypes(special map[reflect.Type]*jsonschema.Schema) {
	var sources []string
	for _, s := range foreign.Sources() {
		sources = append(sources, string(s))
	}
	special[reflect.TypeFor[ImportSource]()] = strictjson.Words(sources...)
	special[reflect.TypeFor[ImportUsers]()] = strictjson.Words(string(usersInScopes), string(usersInTags))
}

// validate refuses empty names, which stand for no place.
func (in ImportFrom) validate() error {
	switch {
	case in.Path == "":
		return errs.Invalid("path", "must name a file or a folder")
	case in.Namespace != nil && *in.Namespace == "":
		return errs.Invalid("namespace", "must not be empty; leave it out for the default")
	case in.Scope != nil && *in.Scope == "":
		return errs.Invalid("scope", "must not be empty; leave it out for the default")
	}
	return nil
}

func importFrom(ctx context.Context, db *loci.DB, in ImportFrom) (*ImportedFrom, error) {
	plan, err := readForeign(ctx, in)
	if err != nil {
		return nil, err
	}
	if len(plan.Users) > 1 && in.Users == "" && !in.DryRun {
		return nil, errs.Invalid("users", "the file has memories of %d users: say scopes to give each a scope of its own, or tags to put all into one", len(plan.Users))
	}
	im := newForeignImport(db, in, plan)
	if err := im.run(ctx); err != nil {
		return nil, err
	}
	return im.receipt(), nil
}

// readForeign reads the whole source.
func readForeign(ctx context.Context, in ImportFrom) (plan *foreign.Plan, err error) {
	source := foreign.Source(in.From)
	info, err := os.Stat(in.Path)
	if err != nil {
		return nil, errs.Wrap(errs.IO, err, "what is to be imported could not be opened")
	}
	name := filepath.Base(in.Path)
	folder := info.IsDir()
	if !folder && !info.Mode().IsRegular() {
		return nil, errs.Invalid("path", "is neither a regular file nor a folder")
	}
	switch source {
	case foreign.PMemory:
		path := in.Path
		if folder {
			path = filepath.Join(path, "store.sqlite3")
		}
		err = store.ReadForeign(ctx, path, func(from store.ForeignDB) (err error) {
			plan, err = foreign.ReadPMemory(filepath.Base(path), func(query string, f func(foreign.Row) error) error {
				return from.Rows(query, func(row store.ForeignRow) error { return f(row) })
			})
			return err
		})
		return plan, err
	case foreign.BasicMemory, foreign.Markdown:
		if folder {
			return readFolder(in.Path, name, source)
		}
		if source == foreign.BasicMemory {
			return nil, errs.Invalid("path", "must be the folder of a project of basic-memory")
		}
	default:
		if folder {
			return nil, errs.Invalid("path", "is a folder, and %s is a file", source)
		}
	}
	read, ok := map[foreign.Source]func(string, io.Reader) (*foreign.Plan, error){
		foreign.MCPMemory: foreign.ReadMCPMemory, foreign.Mem0: foreign.ReadMem0, foreign.JSONL: foreign.ReadJSONL,
		foreign.Markdown: foreign.ReadMarkdownFile,
	}[source]
	if !ok {
		return nil, errs.Invalid("from", "must be one of %v", foreign.Sources())
	}
	f, err := os.Open(in.Path)
	if err != nil {
		return nil, errs.Wrap(errs.IO, err, "what is to be imported could not be opened")
	}
	defer f.Close()
	return read(name, f)
}

// readFolder reads a folder. No path leads out of it, whatever the links in it say.
func readFolder(path, name string, source foreign.Source) (*foreign.Plan, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, errs.Wrap(errs.IO, err, "the folder could not be opened")
	}
	defer root.Close()
	var files fs.FS = root.FS()
	if source == foreign.BasicMemory {
		return foreign.ReadBasicMemory(name, files)
	}
	return foreign.ReadMarkdown(name, files)
}

// foreignImport is one import under way.
type foreignImport struct {
	db   *loci.DB
	in   ImportFrom
	plan *foreign.Plan
	out  *ImportedFrom

	known    map[importPlace]map[string]knownRecord
	entities map[string]adoptedEntity // by their keys in the plan
	done     int64
	total    int64
}

// importPlace is where a record goes.
type importPlace struct{ namespace, scope string }

// knownRecord is a record that an earlier import made.
type knownRecord struct {
	id     loci.ID
	hash   string // of the text that it came with
	edited bool   // it has another text since
}

// adoptedEntity is what became of an entity of the plan.
type adoptedEntity struct {
	id    loci.ID // 0 of one that a dry run would make
	place importPlace
	input *loci.EntityInput
}

func newForeignImport(db *loci.DB, in ImportFrom, plan *foreign.Plan) *foreignImport {
	im := &foreignImport{
		db: db, in: in, plan: plan,
		known: map[importPlace]map[string]knownRecord{}, entities: map[string]adoptedEntity{},
	}
	im.out = &ImportedFrom{
		From: in.From, File: plan.File, DryRun: in.DryRun, Kinds: map[string]*ImportTally{},
		Users: orEmpty(plan.Users), Remarks: orEmpty(slices.Clone(plan.Remarks)), LeftOut: []ImportLeftOut{},
	}
	for _, l := range plan.LeftOut {
		im.out.LeftOut = append(im.out.LeftOut, ImportLeftOut(l))
	}
	for kind, n := range plan.LeftOutCount {
		t := im.tally(kind)
		t.Found, t.LeftOut = n, n
	}
	im.total = int64(len(plan.Memories) + len(plan.Entities) + len(plan.Relations) + len(plan.Events) + len(plan.Facts) +
		len(plan.Episodes) + len(plan.Notes) + len(plan.Settings))
	return im
}

func (im *foreignImport) tally(kind string) *ImportTally {
	t := im.out.Kinds[kind]
	if t == nil {
		t = &ImportTally{}
		im.out.Kinds[kind] = t
	}
	return t
}

// count notes what became of a piece.
func (im *foreignImport) count(kind string, outcome loci.AdoptOutcome) {
	t := im.tally(kind)
	t.Found++
	switch outcome {
	case loci.AdoptCreated:
		t.Created++
	case loci.AdoptMerged:
		t.Merged++
	case loci.AdoptReplaced:
		t.Replaced++
	case loci.AdoptUnchanged:
		t.Unchanged++
	case loci.AdoptRefused:
		t.LeftOut++
	}
}

// leave lists a piece that is left out.
func (im *foreignImport) leave(where, kind, field, reason string) {
	im.count(kind, loci.AdoptRefused)
	if len(im.out.LeftOut) < foreign.MaxLeftOut {
		im.out.LeftOut = append(im.out.LeftOut, ImportLeftOut{where, kind, field, reason})
	}
}

// refuse lists a piece that the store refused.
func (im *foreignImport) refuse(where, kind string, err error) {
	f := FailureOf(err)
	im.leave(where, kind, f.Field, f.Message)
}

func (im *foreignImport) receipt() *ImportedFrom {
	var left int64
	for _, t := range im.out.Kinds {
		left += t.LeftOut
	}
	im.out.Unlisted = left - int64(len(im.out.LeftOut))
	if len(im.plan.Users) > 1 && im.in.Users == "" {
		im.out.Remarks = append(im.out.Remarks, "The memories are of several users: say users scopes or users tags to import them")
	}
	return im.out
}

// step tells how far the import is.
func (im *foreignImport) step(ctx context.Context, n int) error {
	im.done += int64(n)
	if report := ProgressFrom(ctx); report != nil {
		report(im.done, im.total)
	}
	if err := ctx.Err(); err != nil {
		return errs.Wrap(errs.Canceled, err, "the import was ended; the same one again completes it")
	}
	return nil
}

// run writes the plan: what the rest refers to first.
func (im *foreignImport) run(ctx context.Context) error {
	for _, part := range []func(context.Context) error{
		im.settings, im.memories, im.graph, im.relations, im.events, im.facts, im.episodes, im.notes,
	} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	h, err := im.db.Health(ctx)
	if err != nil {
		return err
	}
	im.out.Revision = h.Revision
	return nil
}

// place is where a record goes: where the import is told, else where the source
// has it, else the default.
func (im *foreignImport) place(namespace, scope *string) importPlace {
	pick := func(told, own *string, otherwise string) string {
		switch {
		case told != nil:
			return *told
		case own != nil:
			return *own
		}
		return otherwise
	}
	return importPlace{pick(im.in.Namespace, namespace, loci.DefaultNamespace), pick(im.in.Scope, scope, loci.PublicScope)}
}

func (p importPlace) put(in *loci.RecordInput) {
	in.Namespace, in.Scope = new(p.namespace), new(p.scope)
}

// filter covers the records of the place that an import made.
func (p importPlace) filter() loci.ReadFilter {
	return loci.ReadFilter{
		Namespace: &p.namespace, Scopes: []string{p.scope},
		Where: []loci.Condition{{Key: foreign.KeyName, Op: loci.OpExists}},
	}
}
