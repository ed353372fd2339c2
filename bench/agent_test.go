package bench

import (
	"bytes"
	"testing"
)

// TestRunAgent runs everything on a small scale.
func TestRunAgent(t *testing.T) {
	if testing.Short() {
		t.Skip("loads thousands of facts")
	}
	o := AgentOptions{Facts: 2000, Many: 3000, Dir: t.TempDir(), singles: 3, rounds: 8, idle: 3}
	report, err := RunAgent(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range report.Queries {
		if q.Wrong > 0 {
			t.Errorf("%d of %d answers over %d facts, filter %s, differ from a plain scan", q.Wrong, q.Checked, q.Facts, q.Filter)
		}
	}
	if len(report.Queries) != 2*len(factFilters) || report.Single == nil || report.Batches == nil || report.Snapshots == nil {
		t.Errorf("%+v", report)
	}
	if x := report.Expiry; x == nil || x.Swept != int64(x.Expired) || len(x.Reads) == 0 {
		t.Errorf("%+v", x)
	}
	var text, json bytes.Buffer
	if err := report.WriteText(&text); err != nil {
		t.Error(err)
	}
	if err := report.WriteJSON(&json); err != nil {
		t.Error(err)
	}
	if text.Len() == 0 || json.Len() == 0 {
		t.Error("an empty report")
	}
}

func TestAgentOptions(t *testing.T) {
	for _, o := range []AgentOptions{{Facts: 10}, {Many: 10}, {Parts: []AgentPart{"sleep"}}} {
		if _, err := RunAgent(t.Context(), o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}
