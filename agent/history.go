package agent

import (
	"context"
	"slices"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// Version is a version of a point. It holds no vector.
type Version struct {
	Version int64 `json:"version"` // 1 and up
	// RecordedAtUS is when it was stored, in UTC microseconds, and RecordedToUS when
	// the next one was: it was believed in between. Nil: it still is.
	RecordedAtUS int64  `json:"recorded_at_us"`
	RecordedToUS *int64 `json:"recorded_to_us,omitempty"`
	// ValidFromUS and ValidToUS are between which times it said that a fact holds; nil
	// is open.
	ValidFromUS *int64 `json:"valid_from_us,omitempty"`
	ValidToUS   *int64 `json:"valid_to_us,omitempty"`
	// Content is a fact's content or an episode's description.
	Content string `json:"content,omitempty"`
	// Name and Steps are a procedure's.
	Name     string        `json:"name,omitempty"`
	Steps    []string      `json:"steps,omitempty"`
	Metadata loci.Metadata `json:"metadata"`
}

// Versions are the versions of a point, the current one first.
type Versions struct {
	Versions []Version `json:"versions"`
}

// History gives the versions of a live point, newest first: the current one and as
// many earlier ones as the policy keeps; none for a point that there is not.
func (s *points) History(ctx context.Context, req PointRequest) (*Versions, error) {
	out := &Versions{Versions: []Version{}}
	err := s.m.read(ctx, s.name("history"), func(tx *store.ReadTx, row *store.AgentMemory) error {
		p, err := s.livePoint(tx, row, uint64(req.ID))
		if err != nil || p == nil {
			return err
		}
		policy, err := policyOf(row)
		if err != nil {
			return err
		}
		kept, err := keptVersions(tx, p, &policy)
		if err != nil {
			return err
		}
		current, err := s.version(p, nil)
		if err != nil {
			return err
		}
		out.Versions = append(out.Versions, current)
		for i := range slices.Backward(kept) {
			earlier, err := s.version(past(p, &kept[i]), &kept[i].RecordedTo)
			if err != nil {
				return err
			}
			out.Versions = append(out.Versions, earlier)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// version is a point as a version of itself, which was believed until a time.
func (s *points) version(p *store.Point, to *int64) (Version, error) {
	v := Version{
		Version: p.Version, RecordedAtUS: p.Recorded, RecordedToUS: to, ValidFromUS: p.ValidFrom, ValidToUS: p.ValidTo,
		Metadata: loci.Metadata(p.Metadata),
	}
	switch x := s.m.link.Point(p).(type) {
	case *loci.Fact:
		v.Content = x.Content
	case *loci.Episode:
		v.Content = x.Description
	case *loci.Procedure:
		v.Name, v.Steps = x.Name, x.Steps
	default:
		return v, errs.New(errs.Storage, "record %d is of another kind than its place", p.ID)
	}
	return v, nil
}
