package loci

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/loci-memory/loci/internal/agentpolicy"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/meta"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/valid"
)

// What an import takes as a procedure. Package agent has its own limit, which does not
// lie above this one.
const (
	maxSteps          = 1000
	untriedConfidence = 0.5 // of one that says nothing
)

// importedVersion is an earlier version of a point as a line has it.
type importedVersion struct {
	point int64 // its record
	store.PointVersion
	procedure bool // it has a name and steps
}

func parseAgentMemory(text []byte) (*store.AgentMemory, error) {
	var line agentMemoryLine
	if err := decodeLine(text, &line); err != nil {
		return nil, err
	}
	switch {
	case line.AgentMemory < 1:
		return nil, errs.Invalid("agent_memory", "must be the id of an agent memory")
	case line.Dimension < 1 || line.Dimension > MaxDimension:
		return nil, errs.Invalid("dimension", "must be 1 to %d", MaxDimension)
	case line.Snapshot < 0:
		return nil, errs.Invalid("snapshot", "must not be negative")
	}
	if err := valid.Label("namespace", line.Namespace, MaxNamespaceBytes); err != nil {
		return nil, err
	}
	if err := valid.Label("scope", line.Scope, MaxScopeBytes); err != nil {
		return nil, err
	}
	if err := valid.Label("space", line.Space, MaxNamespaceBytes); err != nil {
		return nil, err
	}
	m := &store.AgentMemory{
		ID: int64(line.AgentMemory), Namespace: line.Namespace, Scope: line.Scope, Dimension: line.Dimension, Space: line.Space,
		Snapshot: line.Snapshot,
	}
	if len(line.Policy) > 0 {
		if _, err := agentpolicy.Parse(line.Policy); err != nil {
			return nil, err
		}
		m.Settings = compact(line.Policy)
	}
	return m, nil
}

func parseFact(in *lineInput) (store.Stored, []importRef, error) {
	line := factLine{pointPart: pointPart{Version: 1}}
	if err := decodeLine(in.text, &line); err != nil {
		return nil, nil, err
	}
	p, err := in.point(KindFact, &line.Header, &line.pointPart)
	if err != nil {
		return nil, nil, err
	}
	p.ValidFrom, p.ValidTo, p.Content = line.ValidFromUS, line.ValidToUS, line.Content
	if err := validValidity(p.ValidFrom, p.ValidTo); err != nil {
		return nil, nil, err
	}
	if !in.given["content"] {
		return nil, nil, errs.Invalid("content", "must be given")
	}
	return p, nil, validText("content", p.Content)
}

func parseEpisode(in *lineInput) (store.Stored, []importRef, error) {
	line := episodeLine{pointPart: pointPart{Version: 1}}
	if err := decodeLine(in.text, &line); err != nil {
		return nil, nil, err
	}
	// An episode was created when it happened.
	switch {
	case in.given["at_us"] && in.given["created_at_us"] && line.AtUS != line.CreatedAtUS:
		return nil, nil, errs.Invalid("at_us", "must be created_at_us")
	case in.given["at_us"]:
		line.CreatedAtUS, in.given["created_at_us"] = line.AtUS, true
	}
	p, err := in.point(KindEpisode, &line.Header, &line.pointPart)
	if err != nil {
		return nil, nil, err
	}
	p.Happened, p.Content = new(p.Created), line.Description
	if !in.given["description"] {
		return nil, nil, errs.Invalid("description", "must be given")
	}
	return p, nil, validText("description", p.Content)
}

func parseProcedure(in *lineInput) (store.Stored, []importRef, error) {
	line := procedureLine{pointPart: pointPart{Version: 1}, Confidence: untriedConfidence}
	if err := decodeLine(in.text, &line); err != nil {
		return nil, nil, err
	}
	p, err := in.point(KindProcedure, &line.Header, &line.pointPart)
	if err != nil {
		return nil, nil, err
	}
	p.Confidence, p.Uses, p.Successes, p.LastUsed = line.Confidence, line.Uses, line.Successes, line.LastUsedUS
	switch {
	case !(p.Confidence >= 0 && p.Confidence <= 1):
		return nil, nil, errs.Invalid("confidence", "must be from 0 to 1")
	case p.Successes < 0 || p.Uses < p.Successes:
		return nil, nil, errs.Invalid("successes", "must be from 0 to uses")
	}
	p.Title = line.Name
	p.Content, p.Data, err = validSteps(line.Name, line.Steps)
	return p, nil, err
}

// point checks what points have in common.
func (in *lineInput) point(kind Kind, h *Header, part *pointPart) (*store.Point, error) {
	r, err := in.header(h)
	if err != nil {
		return nil, err
	}
	r.Kind = kindNumbers[kind]
	if !in.given["recorded_at_us"] {
		part.RecordedAtUS = in.now
	}
	switch {
	case len(r.Evidence) > 0:
		return nil, errs.Invalid("evidence", "is nothing that a %s has", kind)
	case !in.given["point_id"]:
		return nil, errs.Invalid("point_id", "must be given")
	case part.Version < 1:
		return nil, errs.Invalid("version", "must be above 0")
	case part.ExpiresAtUS != nil && *part.ExpiresAtUS < 0:
		return nil, errs.Invalid("expires_at_us", "must not be negative")
	}
	return &store.Point{
		Record: r, Key: uint64(part.PointID), Version: part.Version, Recorded: part.RecordedAtUS, Expires: part.ExpiresAtUS,
	}, validPointMetadata(r.Metadata)
}

// validPointMetadata refuses keys that a point's metadata never has.
func validPointMetadata(metadata []byte) error {
	if len(metadata) == 0 {
		return nil
	}
	members, err := meta.Scan(metadata)
	if err != nil {
		return errs.Invalid("metadata", "%s", err)
	}
	for _, m := range members {
		if m.Key == "content" || strings.HasPrefix(m.Key, "_loci_") {
			return errs.Invalid("metadata", "has a key that the metadata of a point cannot have: content, or one that begins with _loci_")
		}
	}
	return nil
}

func validValidity(from, to *int64) error {
	if from != nil && to != nil && *to <= *from {
		return errs.Invalid("valid_to_us", "must be after valid_from_us")
	}
	return nil
}

// validSteps checks a procedure, and gives its text and what the store keeps of it
// beside that.
func validSteps(name string, steps []string) (text string, data []byte, err error) {
	if err := valid.Label("name", name, MaxNameBytes); err != nil {
		return "", nil, err
	}
	if len(steps) < 1 || len(steps) > maxSteps {
		return "", nil, errs.Invalid("steps", "must be 1 to %d", maxSteps)
	}
	for i, step := range steps {
		if strings.TrimSpace(step) == "" {
			return "", nil, errs.Invalid(fmt.Sprintf("steps[%d]", i), "must not be blank")
		}
	}
	text = strings.Join(steps, "\n")
	if err := validText("steps", text); err != nil {
		return "", nil, err
	}
	if data, err = json.Marshal(procedureData{steps}); err != nil {
		return "", nil, errs.Invalid("steps", "cannot be written")
	}
	return text, data, nil
}

func parsePointVersion(text []byte) (*importedVersion, error) {
	var line pointVersionLine
	if err := decodeLine(text, &line); err != nil {
		return nil, err
	}
	v := &importedVersion{point: int64(line.PointVersion), procedure: line.Content == nil, PointVersion: store.PointVersion{
		Version: line.Version, Recorded: line.RecordedAtUS, RecordedTo: line.RecordedToUS, ValidFrom: line.ValidFromUS, ValidTo: line.ValidToUS,
	}}
	switch {
	case v.point < 1:
		return nil, errs.Invalid("point_version", "must be the id of a record")
	case v.Version < 1:
		return nil, errs.Invalid("version", "must be above 0")
	case v.RecordedTo < v.Recorded:
		return nil, errs.Invalid("recorded_to_us", "must not be before recorded_at_us")
	}
	if err := validValidity(v.ValidFrom, v.ValidTo); err != nil {
		return nil, err
	}
	metadata, _, err := validMetadata("metadata", line.Metadata)
	if err != nil {
		return nil, err
	}
	v.Metadata = metadata
	if err := validPointMetadata(metadata); err != nil {
		return nil, err
	}
	if v.procedure {
		v.Title = line.Name
		v.Content, v.Data, err = validSteps(line.Name, line.Steps)
		return v, err
	}
	if line.Name != "" || len(line.Steps) > 0 {
		return nil, errs.Invalid("content", "does not go with name and steps, which only procedures have")
	}
	v.Content = *line.Content
	return v, validText("content", v.Content)
}

func parsePointEdge(in *lineInput) (*store.PointEdge, error) {
	var line pointEdgeLine
	if err := decodeLine(in.text, &line); err != nil {
		return nil, err
	}
	if !in.given["created_at_us"] {
		line.CreatedAtUS = in.now
	}
	e := &store.PointEdge{
		ID: int64(line.ID), Source: int64(line.From), Type: line.Type, Target: int64(line.To), Key: uint64(line.PointEdge), Created: line.CreatedAtUS,
	}
	switch {
	case e.ID < 0 || e.ID == 0 && in.given["id"]:
		return nil, errs.Invalid("id", "must be above 0")
	case e.Key == 0:
		return nil, errs.Invalid("point_edge", "must be the id of a relation")
	case e.Source < 1:
		return nil, errs.Invalid("from", "must be the id of a record")
	case e.Target < 1:
		return nil, errs.Invalid("to", "must be the id of a record")
	}
	if err := valid.Label("rel_type", e.Type, MaxLabelBytes); err != nil {
		return nil, err
	}
	properties, _, err := validMetadata("properties", line.Properties)
	e.Properties = properties
	return e, err
}
