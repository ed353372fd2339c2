package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"unicode"

	"github.com/cespare/xxhash/v2"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/chatlog"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/link"
	"github.com/loci-memory/loci/internal/meta"
	"github.com/loci-memory/loci/internal/secretscan"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/valid"
)

// importer is one import under way.
type importer struct {
	s      *EpisodicMemory
	req    *ImportRequest
	source string // the format, as metadata names it
	report ImportReport
	// redactor takes the secrets out of messages, whose ids stay what they are.
	redactor *secretscan.Redactor

	batch    []*imported
	bytes    int
	threads  map[string]threadState
	revision int64
}

// imported is a message on its way into an episode.
type imported struct {
	message chatlog.Message
	thread  string // as it is stored
	key     uint64
	draft   *draft // of a new episode; nil until it is needed
}

// threadState is where an import stands in a thread.
type threadState struct {
	last  int64 // the position of the episode that was last in the thread so far; -1: of none
	at    int64 // when the message before happened
	dated bool  // there was one
}

// importCounts is what became of the messages of a batch.
type importCounts struct{ stored, updated, unchanged, idTaken, pending, displaced, dated int64 }

// take puts a message into the batch, and says whether that is full.
func (im *importer) take(m *chatlog.Message) bool {
	i := &imported{message: *m, thread: threadName(m.Thread)}
	if i.thread != m.Thread {
		im.report.Renamed++
	}
	i.key = chatlog.Key(i.thread, m)
	i.message.Text, i.message.Author, i.message.Title = im.redactor.Text(m.Text), im.redactor.Text(m.Author), im.redactor.Text(m.Title)
	im.batch, im.bytes = append(im.batch, i), im.bytes+len(m.Text)
	return len(im.batch) >= importBatch || im.bytes >= importBytes
}

// threadName is the id of a conversation as a thread's name. One that is none becomes
// one: what does not belong into names is taken out, and a hash keeps those apart that
// are the same then.
func threadName(id string) string {
	if valid.Label("thread", id, loci.MaxLabelBytes) == nil {
		return id
	}
	clean := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, id)
	name := fmt.Sprintf("renamed-%016x %s", xxhash.Sum64String(id), strings.TrimSpace(clean))
	for cut := loci.MaxLabelBytes; len(name) > loci.MaxLabelBytes; cut-- {
		name = strings.ToValidUTF8(name[:min(len(name), cut)], "")
	}
	return strings.TrimSpace(name)
}

// flush brings in what is in the batch. It looks first what there is to do, so that
// importing what is there already writes nothing.
func (im *importer) flush(ctx context.Context) error {
	if len(im.batch) == 0 {
		return nil
	}
	var r *importRun
	err := im.s.m.read(ctx, im.s.name(importCall), func(tx *store.ReadTx, row *store.AgentMemory) error {
		r = im.run(tx, row.NamespaceID, row.Place(im.s.kind), im.s.m.link.Clock())
		return r.all(nil)
	})
	if err == nil && !im.req.DryRun && r.counts.stored+r.counts.updated > 0 {
		r, err = im.write(ctx)
	}
	if err != nil {
		return err
	}
	maps.Copy(im.threads, r.threads)
	im.report.add(&r.counts)
	clear(im.batch)
	im.batch, im.bytes = im.batch[:0], 0
	return nil
}

// write is flush where something is to be written: one transaction.
func (im *importer) write(ctx context.Context) (r *importRun, err error) {
	var drafts []*draft
	for _, i := range im.batch {
		if i.draft != nil {
			drafts = append(drafts, i.draft)
		}
	}
	im.s.prepare(drafts)
	if err := im.s.m.ensure(ctx); err != nil {
		return nil, err
	}
	im.revision, err = im.s.change(ctx, importCall, func(w *writer) error {
		r = im.run(w.tx, w.row.NamespaceID, w.place, w.now)
		return r.all(w)
	})
	return r, err
}

// pointReader is what an import reads from: a snapshot, or the writer's transaction.
type pointReader interface {
	link.SwitchReader
	PointByKey(place int64, key uint64) (*store.Point, error)
	PointInThread(namespace, place int64, k store.Kind, thread string, position int64) (*store.Point, error)
	LastInThread(namespace, place int64, k store.Kind, thread string) (position int64, ok bool, err error)
}

// importRun goes through a batch on one state of the store. It keeps what it finds to
// itself, since a transaction may fail and be run again.
type importRun struct {
	*importer
	tx                    pointReader
	namespace, place, now int64
	makes                 bool                   // what it brings in gets vectors
	threads               map[string]threadState // those that the batch has touched
	counts                importCounts
}

func (im *importer) run(tx pointReader, namespace, place, now int64) *importRun {
	return &importRun{importer: im, tx: tx, namespace: namespace, place: place, now: now, threads: map[string]threadState{}}
}

// all goes through the batch, and writes with w if that is not nil.
func (r *importRun) all(w *writer) (err error) {
	if r.makes, err = r.s.m.link.MakesVectors(r.tx, r.s.m.space, r.s.m.namespace); err != nil {
		return err
	}
	for _, i := range r.batch {
		if err := r.one(i, w); err != nil {
			return err
		}
	}
	return nil
}

// one brings in one message.
func (r *importRun) one(i *imported, w *writer) error {
	old, err := r.tx.PointByKey(r.place, i.key)
	if err != nil {
		return err
	}
	state, ok := r.threads[i.thread]
	if !ok {
		if state, ok = r.importer.threads[i.thread]; !ok {
			state.last = -1
		}
	}
	switch {
	case old == nil || expired(old, r.now):
		err = r.add(i, &state, w)
	case old.Thread != i.thread:
		r.counts.idTaken++
		return nil
	default:
		err = r.renew(i, old, &state, w)
	}
	r.threads[i.thread] = state
	return err
}

// add makes a message a new episode.
func (r *importRun) add(i *imported, state *threadState, w *writer) (err error) {
	position := i.message.Position
	if state.last != math.MaxInt64 {
		position = max(position, state.last+1)
	}
	held, err := r.tx.PointInThread(r.namespace, r.place, r.s.kind, i.thread, position)
	if err != nil {
		return err
	}
	if held != nil && !expired(held, r.now) || position <= state.last {
		last, _, err := r.tx.LastInThread(r.namespace, r.place, r.s.kind, i.thread)
		if err != nil {
			return err
		}
		if last = max(last, state.last); last == math.MaxInt64 {
			return errs.New(errs.Conflict, "a thread holds the last position there is, and nothing can be put behind it")
		}
		position = last + 1
	}
	if position != i.message.Position {
		r.counts.displaced++
	}
	at := i.message.At
	if at == 0 {
		r.counts.dated++
		if at = r.now; state.dated {
			at = state.at
		}
	}
	*state = threadState{last: position, at: at, dated: true}
	r.counts.stored++
	if r.makes {
		r.counts.pending++
	}
	if i.draft == nil {
		if i.draft, err = r.s.draftMessage(i, r.source, r.req.TTLSeconds); err != nil {
			return err
		}
	}
	if w == nil {
		return nil
	}
	if i.draft.prepared == nil { // it was there a moment ago
		r.s.prepare([]*draft{i.draft})
	}
	i.draft.point.Position, i.draft.point.Happened = &position, &at
	_, err = w.put(i.draft)
	return err
}

// renew gives an episode that is there what its message says now.
func (r *importRun) renew(i *imported, old *store.Point, state *threadState, w *writer) (err error) {
	p := *old
	p.Content = i.message.Text
	if i.message.At != 0 {
		p.Happened = &i.message.At
	}
	if old.Position != nil {
		state.last = max(state.last, *old.Position)
	}
	state.at, state.dated = valueOr(p.Happened, p.Created), true
	metadata, err := messageMetadata(&i.message, "")
	if err != nil {
		return err
	}
	if p.Metadata, err = meta.Merge(old.Metadata, metadata, true); err != nil {
		return errs.Wrap(errs.Storage, err, "the metadata of point %d is damaged", old.ID)
	}
	if p.Content == old.Content && samePtr(p.Happened, old.Happened) && meta.Equal(p.Metadata, old.Metadata) {
		r.counts.unchanged++
		return nil
	}
	if len(p.Metadata) > loci.MaxMetadataBytes {
		return errs.New(errs.Validation, "the metadata of episode %d would be %d bytes long, at most %d are allowed: make room in it", p.Key, len(p.Metadata), loci.MaxMetadataBytes)
	}
	r.counts.updated++
	if p.Content != old.Content && r.makes {
		r.counts.pending++
	}
	if w == nil {
		return nil
	}
	if r.req.TTLSeconds != nil {
		p.Expires = expiry(w.now, *r.req.TTLSeconds)
	}
	p.Created = *p.Happened
	p.Updated = max(p.Updated, r.s.m.link.Now().UnixMicro(), p.Created)
	if err := w.replace(old, &p); err != nil {
		return err
	}
	if err := w.restage(&p); err != nil || p.Content == old.Content {
		return err
	}
	// A vector that was given for the old text says nothing of the new one.
	return w.tx.DropVector(w.space.ID, &p.Record)
}

// draftMessage checks a message as an episode, whose position and time are not known
// yet.
func (s *EpisodicMemory) draftMessage(i *imported, source string, ttl *uint64) (*draft, error) {
	metadata, err := messageMetadata(&i.message, source)
	if err != nil {
		return nil, err
	}
	return s.draftEpisode("", &EpisodeInput{
		PointInput:  PointInput{ID: loci.PointID(i.key), Metadata: metadata, Thread: &i.thread, TTLSeconds: ttl},
		Description: i.message.Text,
	})
}

// messageMetadata is what the metadata of an episode says of its message.
func messageMetadata(m *chatlog.Message, source string) ([]byte, error) {
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false)
	err := enc.Encode(struct {
		Role      string `json:"role,omitempty"`
		Author    string `json:"author,omitempty"`
		Title     string `json:"title,omitempty"`
		MessageID string `json:"message_id,omitempty"`
		Source    string `json:"source,omitempty"`
	}{m.Role, m.Author, m.Title, m.ID, source})
	return bytes.TrimSpace(raw.Bytes()), errs.Wrap(errs.Validation, err, "the names of a message cannot be written")
}

// add counts a batch.
func (rep *ImportReport) add(c *importCounts) {
	rep.Stored += c.stored
	rep.Updated += c.updated
	rep.Unchanged += c.unchanged
	rep.IDTaken += c.idTaken
	rep.Pending += c.pending
	rep.Displaced += c.displaced
	rep.Dated += c.dated
}

// done is how many messages are in finished batches.
func (rep *ImportReport) done() int64 { return rep.Stored + rep.Updated + rep.Unchanged + rep.IDTaken }

// finish fills in what the reading of the file has counted.
func (im *importer) finish(read *chatlog.Report) ImportReport {
	out := im.report
	out.Format, out.Threads, out.EmptyThreads, out.Messages = ImportFormat(read.Format), read.Threads, read.EmptyThreads, read.Messages
	out.TextBytes, out.CutTexts, out.CutNames, out.Replaced, out.NULs = read.TextBytes, read.CutTexts, read.CutNames, read.Replaced, read.NULs
	out.UnreadTimes, out.RepeatedIDs = read.UnreadTimes, read.RepeatedIDs
	out.LeftOut, out.Parts = map[string]int64{}, map[string]int64{}
	for why, n := range read.LeftOut {
		out.LeftOut[string(why)] = n
	}
	for part, n := range read.Parts {
		out.Parts[string(part)] = n
	}
	return out
}

// interrupted makes the error of an import say what it has kept.
func (im *importer) interrupted(err error) error {
	done := im.report.done()
	if done == 0 || im.req.DryRun {
		return err
	}
	e, ok := errors.AsType[*errs.Error](errs.WithOp(im.s.name(importCall), err))
	if !ok {
		return err
	}
	at := *e
	at.Message = strings.TrimSuffix(fmt.Sprintf("after %d messages, which stay; importing again brings in the rest: %s", done, e.Message), ": ")
	return &at
}
