package op

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/internal/foreign"
)

// settings sets what the store has not set otherwise.
func (im *foreignImport) settings(ctx context.Context) error {
	for i := range im.plan.Settings {
		s := &im.plan.Settings[i]
		namespaces := im.plan.Namespaces
		if s.Namespace != nil {
			namespaces = []string{*s.Namespace}
		}
		if im.in.Namespace != nil {
			namespaces = []string{*im.in.Namespace}
		}
		for _, namespace := range namespaces {
			var outcome loci.AdoptOutcome
			var reason string
			var err error
			switch {
			case s.Rule != nil:
				outcome, reason, err = im.rule(ctx, namespace, *s.Rule)
			case s.Words != nil:
				outcome, reason, err = im.words(ctx, namespace, s.Words)
			default:
				outcome, reason, err = im.noteRoot(ctx, namespace, s.Root)
			}
			switch {
			case err != nil && !isRefusal(err) && !errors.Is(err, loci.ErrIO):
				return err
			case err != nil:
				im.refuse(s.Where, "setting", err)
			case outcome == loci.AdoptRefused:
				im.leave(s.Where, "setting", "", reason)
			default:
				im.count("setting", outcome)
			}
		}
		if err := im.step(ctx, 1); err != nil {
			return err
		}
	}
	return nil
}

func (im *foreignImport) rule(ctx context.Context, namespace string, rule loci.PredicateRule) (loci.AdoptOutcome, string, error) {
	rule.Namespace = namespace
	rules, err := im.db.Graph().PredicateRules(ctx, namespace)
	if err != nil {
		return "", "", err
	}
	for _, r := range rules {
		if r.Namespace != namespace || r.Predicate != rule.Predicate {
			continue
		}
		if r == rule {
			return loci.AdoptUnchanged, "", nil
		}
		return loci.AdoptRefused, "the namespace has another rule of that predicate, which stays", nil
	}
	if !im.in.DryRun {
		_, err = im.db.Graph().SetPredicateRule(ctx, rule)
	}
	return loci.AdoptCreated, "", err
}

func (im *foreignImport) words(ctx context.Context, namespace string, words []string) (loci.AdoptOutcome, string, error) {
	groups, err := im.db.Graph().PredicateEquivalents(ctx, namespace)
	if err != nil {
		return "", "", err
	}
	for _, g := range groups {
		if !slices.ContainsFunc(words, func(w string) bool { return slices.Contains(g.Words, w) }) {
			continue
		}
		if !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(g.Words, w) }) {
			return loci.AdoptUnchanged, "", nil
		}
		return loci.AdoptRefused, "one of the words is in a group of the namespace, which stays", nil
	}
	if !im.in.DryRun {
		_, err = im.db.Graph().SetPredicateEquivalents(ctx, namespace, [][]string{words})
	}
	return loci.AdoptCreated, "", err
}

func (im *foreignImport) noteRoot(ctx context.Context, namespace, dir string) (loci.AdoptOutcome, string, error) {
	root, err := im.db.Notes().Root(ctx, namespace)
	if err != nil {
		return "", "", err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return loci.AdoptRefused, "the folder of the notes is not there", nil
	}
	switch {
	case root != "" && sameFolder(root, dir):
		return loci.AdoptUnchanged, "", nil
	case root != "":
		return loci.AdoptRefused, "the namespace has another folder for notes, which stays", nil
	}
	if !im.in.DryRun {
		_, err = im.db.Notes().SetRoot(ctx, namespace, dir)
	}
	return loci.AdoptCreated, "", err
}

// sameFolder says whether two paths lead to one folder.
func sameFolder(a, b string) bool {
	x, errA := os.Stat(a)
	y, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(x, y)
}

// notes brings in the files that the source keeps as notes, as they are now.
func (im *foreignImport) notes(ctx context.Context) error {
	roots := map[string]string{}
	for _, s := range im.plan.Settings {
		if s.Root != "" {
			roots[*s.Namespace] = s.Root
		}
	}
	for i := range im.plan.Notes {
		n := &im.plan.Notes[i]
		in := n.Input
		dir := roots[*in.Namespace]
		at := im.place(in.Namespace, in.Scope)
		at.put(&in.RecordInput)
		outcome, reason, err := im.note(ctx, dir, at, in)
		switch {
		case err != nil && !isRefusal(err) && !errors.Is(err, loci.ErrIO):
			return err
		case err != nil:
			im.refuse(n.Where, "note", err)
		case outcome == loci.AdoptRefused:
			im.leave(n.Where, "note", "path", reason)
		default:
			im.count("note", outcome)
		}
		if err := im.step(ctx, 1); err != nil {
			return err
		}
	}
	return nil
}

func (im *foreignImport) note(ctx context.Context, dir string, at importPlace, in loci.NoteFileInput) (loci.AdoptOutcome, string, error) {
	folder, err := os.OpenRoot(dir)
	if err != nil {
		return loci.AdoptRefused, "the folder of the notes is not there", nil
	}
	defer folder.Close()
	info, err := folder.Stat(filepath.FromSlash(in.Path))
	if err != nil || !info.Mode().IsRegular() {
		return loci.AdoptRefused, "the file is not there", nil
	}
	if im.in.DryRun {
		return loci.AdoptCreated, "", nil
	}
	root, err := im.db.Notes().Root(ctx, at.namespace)
	if err != nil {
		return "", "", err
	}
	if root == "" || !sameFolder(root, dir) {
		return loci.AdoptRefused, "the namespace has another folder for notes", nil
	}
	before, err := im.db.Health(ctx)
	if err != nil {
		return "", "", err
	}
	r, err := im.db.Notes().UpsertFile(ctx, in)
	switch {
	case err != nil:
		return "", "", err
	case r.Value.Revision <= before.Revision:
		return loci.AdoptUnchanged, "", nil
	}
	return loci.AdoptCreated, "", nil
}

// pointKey is the id of a point that a source names by a key.
func pointKey(key string) loci.PointID {
	sum := sha256.Sum256([]byte(key))
	return loci.PointID(binary.BigEndian.Uint64(sum[:8]))
}

func (im *foreignImport) target(p *foreign.Point) AgentTarget {
	at := im.place(p.Namespace, p.Scope)
	return AgentTarget{&at.namespace, &at.scope}
}

// ready says whether points of a place can be stored. A new memory needs a model to
// take its dimension from; a dry run has to know that too.
func (im *foreignImport) ready(ctx context.Context, p *foreign.Point) (bool, error) {
	m, err := AgentMake{AgentTarget: im.target(p)}.open(ctx, im.db, nil)
	if err != nil {
		return false, err
	}
	return m.Dimension() > 0, nil
}

const noModel = "needs an agent memory, and there is no embedder that gives a new one its dimension: register one, and import again"

// pointInput is what facts and episodes have in common.
func pointInput(p *foreign.Point) agent.PointInput {
	return agent.PointInput{ID: pointKey(p.Key), Metadata: p.Metadata, Tags: p.Tags, Thread: p.Thread, Position: p.Position}
}

// facts stores the facts, each under an id that its key gives.
func (im *foreignImport) facts(ctx context.Context) error {
	pick := (*agent.AgentMemory).Semantic
	for i := range im.plan.Facts {
		p := &im.plan.Facts[i]
		if ok, err := im.ready(ctx, p); err != nil {
			return err
		} else if !ok {
			im.leave(p.Where, "fact", "", noModel)
			continue
		}
		in := agent.FactInput{PointInput: pointInput(p), Content: p.Text, ValidFromUS: p.From, ValidToUS: p.To}
		found, err := inMemory(ctx, im.db, im.target(p), nil, pick, agent.GetRequest{ID: in.ID}, (*agent.SemanticMemory).Get)
		if err != nil {
			return err
		}
		old := found.Point
		same := old != nil && old.Content == strings.TrimSpace(p.Text) && samePtr(old.ValidFromUS, p.From) && samePtr(old.ValidToUS, p.To)
		err = im.point(p.Where, "fact", old != nil, same, func() error {
			_, err := makeMemory(ctx, im.db, AgentMake{AgentTarget: im.target(p)}, nil, pick, in, (*agent.SemanticMemory).Put)
			return err
		})
		if err == nil {
			err = im.step(ctx, 1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// episodes records the episodes, likewise.
func (im *foreignImport) episodes(ctx context.Context) error {
	pick := (*agent.AgentMemory).Episodic
	for i := range im.plan.Episodes {
		p := &im.plan.Episodes[i]
		if ok, err := im.ready(ctx, p); err != nil {
			return err
		} else if !ok {
			im.leave(p.Where, "episode", "", noModel)
			continue
		}
		in := agent.EpisodeInput{PointInput: pointInput(p), Description: p.Text, AtUS: p.At}
		found, err := inMemory(ctx, im.db, im.target(p), nil, pick, agent.GetRequest{ID: in.ID}, (*agent.EpisodicMemory).Get)
		if err != nil {
			return err
		}
		old := found.Point
		same := old != nil && old.Description == strings.TrimSpace(p.Text) && (p.At == nil || old.AtUS == *p.At)
		err = im.point(p.Where, "episode", old != nil, same, func() error {
			_, err := makeMemory(ctx, im.db, AgentMake{AgentTarget: im.target(p)}, nil, pick, in, (*agent.EpisodicMemory).Record)
			return err
		})
		if err == nil {
			err = im.step(ctx, 1)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// point writes a point that is not there as it is.
func (im *foreignImport) point(where, kind string, there, same bool, write func() error) error {
	if same {
		im.count(kind, loci.AdoptUnchanged)
		return nil
	}
	if !im.in.DryRun {
		if err := write(); err != nil {
			if !isRefusal(err) {
				return err
			}
			im.refuse(where, kind, err)
			return nil
		}
	}
	if there {
		im.count(kind, loci.AdoptReplaced)
	} else {
		im.count(kind, loci.AdoptCreated)
	}
	return nil
}

func samePtr[T comparable](a, b *T) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}
