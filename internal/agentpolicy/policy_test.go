package agentpolicy

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/loci-memory/loci/internal/errs"
)

func TestParse(t *testing.T) {
	full := &Policy{ConsolidateAfterSeconds: new(int64(1)), EvictBelowConfidence: new(0.0), KeepVersions: new(0), MaxSnapshots: new(1000)}
	for text, want := range map[string]*Policy{
		"{}": {}, " {\n} ": {}, `{"keep_versions":null}`: {},
		`{"consolidate_after_seconds":1,"evict_below_confidence":0,"keep_versions":0,"max_snapshots":1000}`: full,
		`{"evict_below_confidence":1}`: {EvictBelowConfidence: new(1.0)},
	} {
		got, err := Parse([]byte(text))
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%s: %s, %v", text, d, err)
		}
	}
	for text, field := range map[string]string{
		"": "policy", "null": "policy", "[]": "policy", "1": "policy", "{}{}": "policy", "{": "policy", `{"keep_version":1}`: "policy",
		`{"keep_versions":"1"}`: "policy", `{"keep_versions":1.5}`: "policy", `{"consolidate_after_seconds":9223372036854775808}`: "policy",
		`{"consolidate_after_seconds":0}`: "consolidate_after_seconds", `{"evict_below_confidence":-0.1}`: "evict_below_confidence",
		`{"evict_below_confidence":1.1}`: "evict_below_confidence", `{"keep_versions":-1}`: "keep_versions", `{"keep_versions":1001}`: "keep_versions",
		`{"max_snapshots":0}`: "max_snapshots", `{"max_snapshots":1001}`: "max_snapshots",
	} {
		_, err := Parse([]byte(text))
		if e, ok := errors.AsType[*errs.Error](err); !ok || !errors.Is(err, errs.Validation) || e.Field != field {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// FuzzParse holds that what is read is what is written again.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"{}", `{"keep_versions":3}`, `{"evict_below_confidence":1e-400}`, `{"max_snapshots":1e1}`, "nul", `{"KEEP_VERSIONS":1}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Parse(text)
		if err != nil {
			if !errors.Is(err, errs.Validation) {
				t.Fatal(err)
			}
			return
		}
		written, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(written)
		if d := cmp.Diff(p, again); d != "" || err != nil {
			t.Fatal(d, err)
		}
	})
}
