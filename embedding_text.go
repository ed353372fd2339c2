package loci

import (
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/link"
	"github.com/loci-memory/loci/internal/store"
)

// tiers are the tiers, in the order in which they are shown.
var tiers = []Tier{TierMemory, TierGraph, TierNotes, TierPages, TierAgent}

// number is the tier as it is stored; store.TierMaster when it is none.
func (t Tier) number() store.Tier {
	switch t {
	case TierMemory:
		return store.TierMemory
	case TierGraph:
		return store.TierGraph
	case TierNotes:
		return store.TierNotes
	case TierPages:
		return store.TierPages
	case TierAgent:
		return store.TierAgent
	}
	return store.TierMaster
}

// on says whether a tier's switch is on when nobody has set it.
func (t Tier) on() bool { return t != TierNotes }

// tierOf is the tier of a kind; "" for one that gets no vectors.
func tierOf(kind index.Kind) Tier {
	n := store.TierOf(store.Kind(kind))
	for _, t := range tiers {
		if t.number() == n {
			return t
		}
	}
	return ""
}

// tierKinds are the kinds of a tier.
func tierKinds(t Tier) (kinds []index.Kind) {
	for kind := store.KindMemory; kind <= store.KindProcedure; kind++ {
		if tierOf(index.Kind(kind)) == t {
			kinds = append(kinds, index.Kind(kind))
		}
	}
	return kinds
}

// switches are a namespace's switches, by store.Tier.
type switches [store.TierAgent + 1]bool

// master says whether the namespace takes part at all.
func (s switches) master() bool { return s[store.TierMaster] }

// tier is a tier's own switch, whatever the master says.
func (s switches) tier(t Tier) bool { return s[t.number()] }

// takes says whether the records of a tier get vectors.
func (s switches) takes(t Tier) bool { return s.master() && s.tier(t) }

func readSwitches(tx link.SwitchReader, namespace string) (switches, error) {
	id, _, err := tx.StringID(namespace)
	if err != nil {
		return switches{}, err
	}
	return namespaceSwitches(tx, id) // 0 has none set
}

func namespaceSwitches(tx link.SwitchReader, namespace int64) (out switches, err error) {
	set, err := tx.VectorSwitches(namespace)
	if err != nil {
		return out, err
	}
	out[store.TierMaster] = valueOr(set[store.TierMaster], true)
	for _, t := range tiers {
		out[t.number()] = valueOr(set[t.number()], t.on())
	}
	return out, nil
}

// switchesOf gives the switches of a namespace, known or not.
func (e *engine) switchesOf(tx *store.ReadTx, namespace string) (switches, error) {
	return readSwitches(tx, namespace)
}

// vectorReady says whether nothing is missing in a tier that is on.
func (e *engine) vectorReady(tx *store.ReadTx, namespaceID, space int64, t Tier) (bool, error) {
	on, err := namespaceSwitches(tx, namespaceID)
	if err != nil || !on.master() || !on.tier(t) {
		return false, err
	}
	return tx.VectorReady(namespaceID, t.number(), space)
}

// embeddedText is what of a record's document is embedded: its name, unless the
// text has it too, and its text, a piece a line. A record without any is not
// embedded.
func embeddedText(d *index.Document) string {
	pieces := make([]string, 0, len(d.Name)+len(d.Text))
	for _, name := range d.Name {
		if !slices.Contains(d.Text, name) {
			pieces = append(pieces, name)
		}
	}
	pieces = append(pieces, d.Text...)
	kept := pieces[:0]
	for _, p := range pieces {
		if p = strings.TrimSpace(p); p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, "\n")
}

// fingerprintOf tells texts apart, so that a vector is known to be of another
// one.
func fingerprintOf(text string) uint64 { return max(xxhash.Sum64String(text), store.TextOfCaller+1) }

// stage hands a record's new state to the index. Vectors of an earlier text go.
func (e *engine) stage(tx *store.WriteTx, r *store.Record, p *index.Prepared) error {
	return tx.StageText(r, p, func() uint64 { return fingerprintOf(embeddedText(p.Document)) })
}
