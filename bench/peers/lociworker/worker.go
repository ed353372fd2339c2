// Package lociworker is Loci behind the protocol of the comparison. It works with
// what the product offers its users in Go, and nothing besides.
package lociworker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/loci-memory/loci/bench/peers/protocol"
)

// patience is how long a record may take to be found after its write returned
// before the run is told that it never was.
const patience = time.Minute

// visibleAmong is how many hits a new record has to be among.
const visibleAmong = 10

// worker answers the requests of one run.
type worker struct {
	idle      int64 // resident before anything was opened
	store     *store
	dimension int
	records   lineFile
}

// Main answers requests until the one that closes the store, or the end of in. What
// a request fails of is its answer; the error is of reading and answering alone.
func Main(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	resident, _, err := memory()
	if err != nil {
		return err
	}
	w := &worker{idle: resident}
	defer func() { err = errors.Join(err, w.shut()) }()
	requests := bufio.NewReader(in)
	answers := json.NewEncoder(out)
	answers.SetEscapeHTML(false)
	for {
		line, err := requests.ReadBytes('\n')
		switch {
		case len(bytes.TrimSpace(line)) > 0:
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		default:
			continue
		}
		var request struct {
			Op   string          `json:"op"`
			Args json.RawMessage `json:"args"`
		}
		reply := protocol.Reply[any]{}
		failed := json.Unmarshal(line, &request)
		if failed == nil {
			var ok any
			if ok, failed = w.answer(ctx, request.Op, request.Args); failed == nil {
				reply.OK = &ok
			}
		}
		if lacks, ok := errors.AsType[unsupported](failed); ok {
			reply.Unsupported = string(lacks)
		} else if failed != nil {
			reply.Error = failed.Error()
		}
		if err := answers.Encode(reply); err != nil {
			return err
		}
		if request.Op == protocol.OpClose {
			return nil
		}
	}
}

// unsupported says what the store at hand has no answer to, and why.
type unsupported string

// Error implements error.
func (u unsupported) Error() string { return string(u) }

// answer does what one request asks for.
func (w *worker) answer(ctx context.Context, op string, args json.RawMessage) (any, error) {
	switch op {
	case protocol.OpHello:
		return hello(), nil
	case protocol.OpOpen:
		return with(args, func(a protocol.Open) (any, error) { return w.open(ctx, a) })
	case protocol.OpMemory:
		resident, anonymous, err := memory()
		return protocol.Memory{Resident: resident, Anonymous: anonymous, Idle: w.idle}, err
	case protocol.OpClose:
		var m meter
		err := m.call(w.shut)
		return m.cost(), err
	}
	if w.store == nil {
		return nil, fmt.Errorf("%s: nothing is open", op)
	}
	switch op {
	case protocol.OpLoad:
		return with(args, func(a protocol.Load) (any, error) { return w.load(ctx, a) })
	case protocol.OpFinish:
		return settle(ctx)
	case protocol.OpSingle:
		return with(args, func(a protocol.Load) (any, error) { return w.single(ctx, a) })
	case protocol.OpVisible:
		return with(args, func(a protocol.Visible) (any, error) { return w.visible(ctx, a) })
	case protocol.OpSearch:
		return with(args, func(a protocol.Search) (any, error) { return w.search(ctx, a) })
	case protocol.OpUpdate:
		return with(args, func(a protocol.Load) (any, error) { return w.update(ctx, a) })
	case protocol.OpDelete:
		return with(args, func(a protocol.Load) (any, error) { return w.delete(ctx, a) })
	case protocol.OpMixed:
		return with(args, func(a protocol.Mixed) (any, error) { return w.mixed(ctx, a) })
	case protocol.OpGraph:
		return with(args, func(a protocol.Graph) (any, error) { return w.graph(ctx, a) })
	case protocol.OpNear:
		return with(args, func(a protocol.Near) (any, error) { return w.near(ctx, a) })
	case protocol.OpPath:
		return with(args, func(a protocol.Path) (any, error) { return w.path(ctx, a) })
	}
	return nil, fmt.Errorf("no operation %q", op)
}

// with decodes a request's arguments for f.
func with[T any](args json.RawMessage, f func(T) (any, error)) (any, error) {
	var a T
	if len(args) > 0 {
		if err := json.Unmarshal(args, &a); err != nil {
			return nil, err
		}
	}
	return f(a)
}

func (w *worker) open(ctx context.Context, a protocol.Open) (any, error) {
	if w.store != nil {
		return nil, errors.New("a store is open already")
	}
	var m meter
	err := m.call(func() (err error) {
		w.store, err = open(ctx, a)
		return err
	})
	w.dimension = a.Dimension
	return m.cost(), err
}

// shut closes the store, if one is open.
func (w *worker) shut() error {
	s := w.store
	w.store = nil
	if s == nil {
		return nil
	}
	return errors.Join(s.close(), w.records.close())
}

// rows opens a file of vectors, if the store takes any.
func (w *worker) rows(path string) (*rows, error) {
	if w.store.facts == nil {
		return nil, nil
	}
	return openRows(path, w.dimension)
}

// batch are records with their vectors, as many, or none.
type batch struct {
	records []protocol.Record
	vectors [][]float32
}

// batches reads what a request names and hands it on in parts of a size, so that
// nothing of the reading lies within f's clock.
func (w *worker) batches(a protocol.Load, size int, f func(batch) error) (err error) {
	if size < 1 {
		return fmt.Errorf("a batch of %d records", size)
	}
	rows, err := w.rows(a.Vectors)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.close()) }()
	if err := w.records.seek(a.Records, a.From); err != nil {
		return err
	}
	for at := a.From; at < a.To; {
		var b batch
		if b.records, err = w.records.read(min(size, a.To-at)); err != nil {
			return err
		}
		if rows != nil {
			if b.vectors, err = rows.read(at, len(b.records)); err != nil {
				return err
			}
		}
		if err := f(b); err != nil {
			return err
		}
		at += len(b.records)
	}
	return nil
}

func (w *worker) load(ctx context.Context, a protocol.Load) (any, error) {
	var m meter
	err := w.batches(a, a.Batch, func(b batch) error { return w.insert(ctx, &m, b) })
	return m.cost(), err
}

func (w *worker) single(ctx context.Context, a protocol.Load) (any, error) {
	a.Batch = 1
	return w.load(ctx, a)
}

// insert writes a batch and keeps, outside the clock, what the store calls it.
func (w *worker) insert(ctx context.Context, m *meter, b batch) error {
	var own []int64
	err := m.call(func() (err error) {
		own, err = w.store.insert(ctx, b)
		return err
	})
	if err != nil {
		return err
	}
	return w.store.name(b.records, own)
}

func (w *worker) visible(ctx context.Context, a protocol.Visible) (any, error) {
	var m meter
	err := w.batches(a.Load, 1, func(b batch) error {
		var own []int64
		err := m.call(func() (err error) {
			own, err = w.writeAndFind(ctx, b, a.Effort)
			return err
		})
		if err != nil {
			return err
		}
		return w.store.name(b.records, own)
	})
	return m.cost(), err
}

// writeAndFind writes a record and asks for it until it is found: by its first word,
// which no other record has, or else by its vector.
func (w *worker) writeAndFind(ctx context.Context, b batch, effort int) ([]int64, error) {
	own, err := w.store.insert(ctx, b)
	if err != nil {
		return nil, err
	}
	q := question{kind: protocol.KindVector, k: visibleAmong, exact: effort == effortExact}
	if w.store.texts {
		q.kind = protocol.KindText
		words := strings.Fields(w.store.text(b.records[0].Text, b.records[0].Words))
		if len(words) == 0 {
			return nil, fmt.Errorf("record %d has no word to find it by", b.records[0].ID)
		}
		q.text = words[0]
	} else {
		q.vector = b.vectors[0]
	}
	for begin := time.Now(); ; {
		found, err := w.store.ask(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, id := range found {
			if id == own[0] {
				return own, nil
			}
		}
		if time.Since(begin) > patience {
			return nil, fmt.Errorf("record %d was not found within %v of its write", b.records[0].ID, patience)
		}
	}
}

// questions makes ready all that a request asks.
func (w *worker) questions(a protocol.Search) (out []question, err error) {
	rows, err := w.rows(a.Vectors)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.close()) }()
	for i, q := range a.Queries {
		next := question{kind: a.Kind, text: w.store.text(q.Text, q.Words), k: a.K, tag: q.Tag, exact: a.Exact || a.Effort == effortExact}
		if q.Vector != nil && rows != nil {
			vectors, err := rows.read(*q.Vector, 1)
			if err != nil {
				return nil, err
			}
			next.vector = vectors[0]
		}
		if err := w.store.check(&next); err != nil {
			return nil, fmt.Errorf("query %d: %w", i, err)
		}
		out = append(out, next)
	}
	return out, nil
}

func (w *worker) search(ctx context.Context, a protocol.Search) (any, error) {
	questions, err := w.questions(a)
	if err != nil {
		return nil, err
	}
	var m meter
	out := protocol.Found{IDs: make([][]int, 0, len(questions))}
	for _, q := range questions {
		var own []int64
		err := m.call(func() (err error) {
			own, err = w.store.ask(ctx, q)
			return err
		})
		if err != nil {
			return nil, err
		}
		ids, err := w.store.records(own)
		if err != nil {
			return nil, err
		}
		out.IDs = append(out.IDs, ids)
	}
	out.Cost = m.cost()
	return out, nil
}

func (w *worker) update(ctx context.Context, a protocol.Load) (any, error) {
	var m meter
	err := w.batches(a, 1, func(b batch) error {
		r := &b.records[0]
		r.Text += " changed"
		r.Words += " changed"
		own, err := w.store.own(r.ID)
		if err != nil {
			return err
		}
		return m.call(func() error { return w.store.update(ctx, own, b) })
	})
	return m.cost(), err
}

func (w *worker) delete(ctx context.Context, a protocol.Load) (any, error) {
	var m meter
	for id := a.From; id < a.To; id++ {
		own, err := w.store.own(id)
		if err != nil {
			return nil, err
		}
		if err := m.call(func() error { return w.store.delete(ctx, own) }); err != nil {
			return nil, err
		}
	}
	return m.cost(), nil
}
