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

// DefaultSpace is the number of the space that a namespace's searches use; 0 when
// none is set.
func (tx *ReadTx) DefaultSpace(namespace int64) (int64, error) {
	c := tx.settings
	c.mu.RLock()
	space, ok := c.defaults[namespace]
	ok = ok && tx.revision >= c.changed
	c.mu.RUnlock()
	if ok {
		return space, nil
	}
	space, err := tx.session.DefaultSpace(namespace)
	if err == nil {
		c.keep(tx.revision, func() { c.defaults = bounded(c.defaults, namespace, space) })
	}
	return space, err
}

// VectorSwitches gives what is set of a namespace.
func (tx *ReadTx) VectorSwitches(namespace int64) (VectorSwitches, error) {
	c := tx.settings
	c.mu.RLock()
	out, ok := c.switches[namespace]
	ok = ok && tx.revision >= c.changed
	c.mu.RUnlock()
	if ok {
		return out, nil
	}
	out, err := tx.session.VectorSwitches(namespace)
	if err == nil {
		c.keep(tx.revision, func() { c.switches = bounded(c.switches, namespace, out) })
	}
	return out, err
}

// AgentMemory gives the agent memory of a scope; nil when there is none.
func (tx *ReadTx) AgentMemory(namespace, scope string) (*AgentMemory, error) {
	c, key := tx.settings, [2]string{namespace, scope}
	c.mu.RLock()
	m, ok := c.agents[key]
	ok = ok && tx.revision >= c.changed
	c.mu.RUnlock()
	if !ok {
		var err error
		if m, err = tx.session.AgentMemory(namespace, scope); err != nil {
			return nil, err
		}
		c.keep(tx.revision, func() { c.agents = bounded(c.agents, key, m) })
	}
	if m == nil {
		return nil, nil
	}
	return new(*m), nil
}

// Places gives where the points of a scope lie now, by kind; false when the scope
// has no agent memory. Scope and namespace are ids of the dictionary.
func (tx *ReadTx) Places(namespace, scope int64) (places [3]int64, ok bool, err error) {
	c, key := tx.settings, [2]int64{namespace, scope}
	c.mu.RLock()
	kept, known := c.places[key]
	known = known && tx.revision >= c.changed
	c.mu.RUnlock()
	if !known {
		if places, ok, err = tx.session.Places(namespace, scope); err != nil {
			return places, false, err
		}
		if ok {
			kept = &places
		}
		c.keep(tx.revision, func() { c.places = bounded(c.places, key, kept) })
	}
	if kept == nil {
		return places, false, nil
	}
	return *kept, true, nil
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
