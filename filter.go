package loci

import (
	"context"
	"fmt"
	"slices"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/meta"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/valid"
)

const (
	maxFilterScopes = 10000
	maxFilterNotes  = 10000
	defaultPage     = 50
)

// readFilter is a ReadFilter that was checked and had its defaults filled in.
type readFilter struct {
	store.Filter // its Kind is the operation's to set
	kinds        []index.Kind
	noteIDs      []ID
	where        []index.Condition
}

// check validates the filter and refuses one that names what ctx's access may not
// read; field goes before the names of its fields.
func (f *ReadFilter) check(ctx context.Context, field string) (*readFilter, error) {
	out := &readFilter{Filter: store.Filter{Namespace: DefaultNamespace, Scopes: []string{PublicScope}}}
	if f.Namespace != nil {
		if err := valid.Label(field+"namespace", *f.Namespace, MaxNamespaceBytes); err != nil {
			return nil, err
		}
		out.Namespace = *f.Namespace
	}
	if f.Scopes != nil {
		if len(f.Scopes) == 0 {
			return nil, errs.Invalid(field+"scopes", "must name at least one scope; leave it out for %q", PublicScope)
		}
		if len(f.Scopes) > maxFilterScopes {
			return nil, errs.Invalid(field+"scopes", "has %d entries, at most %d are allowed", len(f.Scopes), maxFilterScopes)
		}
		for i, scope := range f.Scopes {
			if err := valid.Label(fmt.Sprintf("%sscopes[%d]", field, i), scope, MaxScopeBytes); err != nil {
				return nil, err
			}
		}
		out.Scopes = slices.Clone(f.Scopes)
	}
	var err error
	if out.Tags, err = validTags(field+"tags", f.Tags); err != nil {
		return nil, err
	}
	if len(f.NoteIDs) > maxFilterNotes {
		return nil, errs.Invalid(field+"note_ids", "has %d entries, at most %d are allowed", len(f.NoteIDs), maxFilterNotes)
	}
	for i, id := range f.NoteIDs {
		if id < 1 {
			return nil, errs.Invalid(fmt.Sprintf("%snote_ids[%d]", field, i), "must be above 0, not %d", id)
		}
	}
	out.noteIDs = slices.Clone(f.NoteIDs)
	for i, kind := range f.Kinds {
		n := kind.number()
		if n == 0 {
			return nil, errs.Invalid(fmt.Sprintf("%skinds[%d]", field, i), "is not a kind of record")
		}
		out.kinds = append(out.kinds, n)
	}
	if out.where, err = checkConditions(field+"where", f.Where); err != nil {
		return nil, err
	}
	if f.CreatedFromUS != nil && f.CreatedToUS != nil && *f.CreatedFromUS > *f.CreatedToUS {
		return nil, errs.Invalid(field+"created_from_us", "is %d, after created_to_us %d", *f.CreatedFromUS, *f.CreatedToUS)
	}
	out.From, out.To = clonePtr(f.CreatedFromUS), clonePtr(f.CreatedToUS)
	if f.Thread != nil {
		if err := valid.Label(field+"thread", *f.Thread, MaxLabelBytes); err != nil {
			return nil, err
		}
		out.Thread = *f.Thread
	}
	return out, out.allowed(ctx, field, AccessFrom(ctx).Reads, "read")
}

// checkWrite is check for a filter of what is to be changed: all that it names must
// be allowed to be.
func (f *ReadFilter) checkWrite(ctx context.Context, field string) (*readFilter, error) {
	if err := f.checkLists(field); err != nil {
		return nil, err
	}
	out, err := f.check(ctx, field)
	if err != nil {
		return nil, err
	}
	return out, out.allowed(ctx, field, AccessFrom(ctx).Writes, "write")
}

// checkLists refuses a list that is there and has nothing in it. Whoever gives one,
// out of a variable that was not set perhaps, does not mean every record.
func (f *ReadFilter) checkLists(field string) error {
	switch {
	case emptyList(f.Tags):
		return refuseEmpty(field + "tags")
	case emptyList(f.Kinds):
		return refuseEmpty(field + "kinds")
	case emptyList(f.NoteIDs):
		return refuseEmpty(field + "note_ids")
	case emptyList(f.Where):
		return refuseEmpty(field + "where")
	}
	return nil
}

func emptyList[T any](list []T) bool { return list != nil && len(list) == 0 }

func refuseEmpty(field string) error {
	return errs.Invalid(field, "is an empty list, which would mean everything: name what is meant, or leave it out")
}

// allowed refuses the first scope of the filter that access does not cover.
func (f *readFilter) allowed(ctx context.Context, field string, covers func(namespace, scope string) bool, verb string) error {
	for i, scope := range f.Scopes {
		if !covers(f.Namespace, scope) {
			return AccessFrom(ctx).refusal(field, fmt.Sprintf("scopes[%d]", i), f.Namespace, scope, verb)
		}
	}
	return nil
}

// memories narrows the filter to memories; false when it covers none.
func (f *readFilter) memories() bool {
	f.Kind = store.KindMemory
	return (len(f.kinds) == 0 || slices.Contains(f.kinds, index.Kind(store.KindMemory))) && len(f.noteIDs) == 0
}

// of is the filter for records of one kind; false when it covers none.
func (f *readFilter) of(kind store.Kind) (*readFilter, bool) {
	narrowed := *f
	narrowed.Kind = kind
	return &narrowed, (len(f.kinds) == 0 || slices.Contains(f.kinds, index.Kind(kind))) &&
		(len(f.noteIDs) == 0 || kind == store.KindChunk)
}

// covers says whether the filter covers a record, its metadata included.
func (f *readFilter) covers(r *store.Record) bool {
	return f.Covers(r) && f.coversMetadata(r)
}

func (f *readFilter) coversMetadata(r *store.Record) bool {
	if len(f.where) == 0 {
		return true
	}
	members, err := meta.Scan(r.Metadata)
	if err != nil {
		return false
	}
	attributes := meta.Attributes(members)
	for _, condition := range f.where {
		if !index.Match(condition, attributes) {
			return false
		}
	}
	return true
}

// checkConditions validates conditions and gives them as the index takes them.
func checkConditions(field string, conditions []Condition) ([]index.Condition, error) {
	raw := make([]meta.Condition, len(conditions))
	for i, c := range conditions {
		raw[i] = meta.Condition{Key: c.Key, Op: string(c.Op), Value: c.Value}
	}
	return meta.Conditions(field, raw)
}

// checkLimit gives a limit or its default.
func checkLimit(field string, limit *int, otherwise int) (int, error) {
	if limit == nil {
		return otherwise, nil
	}
	if *limit < 1 || *limit > MaxPage {
		return 0, errs.Invalid(field, "must be 1 to %d, not %d", MaxPage, *limit)
	}
	return *limit, nil
}
