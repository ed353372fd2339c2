package local

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net"
	"time"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// helloPatience is how long a peer has to introduce itself.
const helloPatience = 5 * time.Second

// hello introduces the attached side. Its form, and that of welcome, never
// changes but for new fields, so that two versions can tell each other apart.
type hello struct {
	Protocol      int    `json:"protocol"`
	SchemaVersion int    `json:"schema_version"`
	Secret        string `json:"secret"` // of the lock file
}

// welcome introduces the holder.
type welcome struct {
	Protocol      int    `json:"protocol"`
	SchemaVersion int    `json:"schema_version"`
	Version       string `json:"version"`
	PID           int    `json:"pid"`
	// Instance is that of the lock file. Without it the peer has been refused.
	Instance string `json:"instance,omitempty"`
	Refused  string `json:"refused,omitempty"` // why
}

// random is a word that nobody guesses.
func random() string { return rand.Text() }

func sameSecret(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// unequal says which side has to be upgraded for two processes to understand
// each other; nil when they do. The holder's side comes as it introduced itself
// in the lock file or on the line.
func unequal(pid int, holderVersion string, holderProtocol, holderSchema int) error {
	mine, theirs := protocol, holderProtocol
	what := "protocol"
	if holderSchema != store.SchemaVersion {
		what, mine, theirs = "schema", store.SchemaVersion, holderSchema
	}
	if mine == theirs {
		return nil
	}
	do := "upgrade this program, or end that process"
	if theirs < mine {
		do = "end that process, and start it again with a version as new as this one"
	}
	return errs.New(errs.Locked, "the memory is held by process %d, loci %s, which speaks %s %d, and this program speaks %d: %s",
		pid, orUnknown(holderVersion), what, theirs, mine, do)
}

func orUnknown(version string) string {
	if version == "" {
		return "of an unknown version"
	}
	return version
}

// writeJSONFrame sends one frame with a JSON body within patience.
func writeJSONFrame(conn net.Conn, kind byte, v any, patience time.Duration) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := conn.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err = conn.Write(appendFrame(nil, kind, 0, body))
	return err
}

// readHello reads the frame that a connection begins with.
func readHello(f frame, v any) error {
	if f.kind != kindHello {
		return fmt.Errorf("%w: it begins with a frame of kind %d", errFrame, f.kind)
	}
	if err := json.Unmarshal(f.body, v); err != nil {
		return fmt.Errorf("%w: %w", errFrame, err)
	}
	return nil
}
