package agent

import (
	"bytes"
	"testing"

	"github.com/loci-memory/loci"
)

// What the model of a whole memory found stands here once more, in a few lines each.

// TestDeserializeOverExpired holds that what has expired holds nothing: the relations
// that led to it do not lead to the point of its id that a file brings. // Z5, R6
func TestDeserializeOverExpired(t *testing.T) {
	m := openMemory(t, 4)
	keepEpisode(t, m.AgentMemory, EpisodeInput{PointInput: PointInput{ID: 3}, Description: "power cut"})
	keepProcedure(t, m.AgentMemory, ProcedureInput{PointInput: PointInput{ID: 0}, Name: "deploy", Steps: []string{"go"}})
	file := serialized(t, &m.episodes.points)
	join(t, &m.procedures.points, 0, "a", loci.KindEpisode, 3, "")
	must[*loci.Receipt[Stored]](t)(m.episodes.SetTTL(t.Context(), TTLRequest{ID: 3, TTLSeconds: 1}))
	m.clock.Set(T + 5*second)
	must[*loci.Receipt[Restored]](t)(m.episodes.Deserialize(t.Context(), bytes.NewReader(file)))
	if got := must[*Edges](t)(m.procedures.Relations(t.Context(), RelationsRequest{ID: 0})).Edges; len(got) > 0 {
		t.Errorf("relations %+v", got)
	}
}
