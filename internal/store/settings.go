package store

import (
	"maps"
	"sync"
)

// settingsLimit bounds the namespaces whose settings are kept.
const settingsLimit = 4096

// settings keeps what searches ask each time and what hardly ever changes: the spaces
// of vectors, each namespace's space and switches, and the agent memories. As with shared
// records, what is kept holds from the last change on, so a change empties it before
// its commit, and snapshots below the revision of that change go without.
type settings struct {
	mu       sync.RWMutex
	changed  int64
	known    bool // spaces are
	spaces   []*Space
	defaults map[int64]int64 // by namespace
	switches map[int64]VectorSwitches
	agents   map[[2]string]*AgentMemory // by namespace and scope; nil for none
	places   map[[2]int64]*[3]int64     // likewise, by their numbers
}

// change forgets all before the commit of a change to it, which makes the revision.
func (c *settings) change(revision int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed, c.known = revision, false
	c.spaces, c.defaults, c.switches, c.agents, c.places = nil, nil, nil, nil, nil
}

// keep puts something in, unless it may be of a state that is over.
func (c *settings) keep(revision int64, put func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if revision >= c.changed {
		put()
	}
}

// changesSettings says whether a statement changes what settings keeps.
func changesSettings(which statement) bool {
	switch which {
	case sqlAddSpace, sqlSetProbe, sqlDropSpace, sqlSetSwitch, sqlSetDefaultSpace, sqlClearDefaultSpace,
		sqlClearDefaultSpaces, sqlAddAgentMemory, sqlUpdateAgentMemory:
		return true
	}
	return false
}

// Spaces gives the spaces by name.
func (tx *ReadTx) Spaces() ([]*Space, error) {
	shared, err := tx.sharedSpaces()
	var out []*Space
	for _, sp := range shared {
		out = append(out, new(*sp))
	}
	return out, err
}

// Space gives the space of a name; nil when there is none.
func (tx *ReadTx) Space(name string) (*Space, error) {
	shared, err := tx.sharedSpaces()
	for _, sp := range shared {
		if sp.Name == name {
			return new(*sp), err
		}
	}
	return nil, err
}

// sharedSpaces gives the spaces by name, which nobody may change.
func (tx *ReadTx) sharedSpaces() ([]*Space, error) {
	c := tx.settings
	c.mu.RLock()
	spaces, ok := c.spaces, c.known && tx.revision >= c.changed
	c.mu.RUnlock()
	if ok {
		return spaces, nil
	}
	spaces, err := tx.session.Spaces()
	if err == nil {
		c.keep(tx.revision, func() { c.spaces, c.known = spaces, true })
	}
	return spaces, err
}

// kept gives an entry of one of the tables of settings, or reads it and puts it there.
func kept[K comparable, V any](tx *ReadTx, table func(*settings) *map[K]V, key K, read func() (V, error)) (V, error) {
	c := tx.settings
	c.mu.RLock()
	v, ok := (*table(c))[key]
	ok = ok && tx.revision >= c.changed
	c.mu.RUnlock()
	if ok {
		return v, nil
	}
	v, err := read()
	if err == nil {
		c.keep(tx.revision, func() { m := table(c); *m = bounded(*m, key, v) })
	}
	return v, err
}

// DefaultSpace is the number of the space that a namespace's searches use; 0 when
// none is set.
func (tx *ReadTx) DefaultSpace(namespace int64) (int64, error) {
	return kept(tx, func(c *settings) *map[int64]int64 { return &c.defaults }, namespace,
		func() (int64, error) { return tx.session.DefaultSpace(namespace) })
}

// VectorSwitches gives what is set of a namespace.
func (tx *ReadTx) VectorSwitches(namespace int64) (VectorSwitches, error) {
	return kept(tx, func(c *settings) *map[int64]VectorSwitches { return &c.switches }, namespace,
		func() (VectorSwitches, error) { return tx.session.VectorSwitches(namespace) })
}

// AgentMemory gives the agent memory of a scope; nil when there is none.
func (tx *ReadTx) AgentMemory(namespace, scope string) (*AgentMemory, error) {
	m, err := kept(tx, func(c *settings) *map[[2]string]*AgentMemory { return &c.agents }, [2]string{namespace, scope},
		func() (*AgentMemory, error) { return tx.session.AgentMemory(namespace, scope) })
	if m == nil || err != nil {
		return nil, err
	}
	return new(*m), nil // the caller may change it
}

// Places gives where the points of a scope lie now, by kind; false when the scope
// has no agent memory. Scope and namespace are ids of the dictionary.
func (tx *ReadTx) Places(namespace, scope int64) (places [3]int64, ok bool, err error) {
	at, err := kept(tx, func(c *settings) *map[[2]int64]*[3]int64 { return &c.places }, [2]int64{namespace, scope},
		func() (*[3]int64, error) {
			at, ok, err := tx.session.Places(namespace, scope)
			if !ok || err != nil {
				return nil, err
			}
			return &at, nil
		})
	if at == nil || err != nil {
		return places, false, err
	}
	return *at, true, nil
}

// bounded puts an entry into a map that is made when there is none, and makes room
// when it is full.
func bounded[K comparable, V any](m map[K]V, key K, value V) map[K]V {
	if m == nil {
		m = map[K]V{}
	}
	if len(m) >= settingsLimit {
		for other := range maps.Keys(m) {
			delete(m, other)
			break
		}
	}
	m[key] = value
	return m
}
