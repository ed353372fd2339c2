package local

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/op"
)

// protocol is the number of what this file and hello.go say. It goes up with
// every change that a peer of the other number would misread, a new field of a
// call included: one that narrows what a call may do must not be overlooked.
const protocol = 1

// What a frame is. A connection begins with a hello each way; then the attached
// side sends calls and cancels, and the holder all the rest.
const (
	kindHello    byte = 1
	kindCall     byte = 2 // a callHeader and the input
	kindAnswer   byte = 3 // the result
	kindFailure  byte = 4 // a failure
	kindProgress byte = 5 // two numbers: done, total
	kindCancel   byte = 6 // nobody waits for the call any more
	// kindMoved says that the call has not been done here and may be repeated at
	// the next holder. With the id 0 it says that this holder is going.
	kindMoved byte = 7
	// kindEnd is the holder's last word: what it has not answered it has not begun.
	kindEnd byte = 8
)

// The limits of frames, in bytes. An answer that is larger is refused by the
// holder in words.
const (
	frameHead  = 13 // length of the body, kind, id
	maxHello   = 16 << 10
	maxHeader  = 1 << 20
	maxCall    = op.MaxInputBytes + maxHeader + 4
	maxAnswer  = 256 << 20
	trustedLen = 64 << 10 // a body up to here gets its memory before it has come
)

// frame is one message. The id is that of the call it is about.
type frame struct {
	kind byte
	id   uint64
	body []byte
}

// errFrame says that a peer does not speak the protocol.
var errFrame = errors.New("the peer does not speak the protocol")

// appendFrame writes a frame whose body is the parts, one after the other.
func appendFrame(b []byte, kind byte, id uint64, parts ...[]byte) []byte {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(n))
	b = append(b, kind)
	b = binary.BigEndian.AppendUint64(b, id)
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// bodyLen is the length that the head of a frame announces, if it is at most limit.
func bodyLen(head []byte, limit int) (int, error) {
	n := binary.BigEndian.Uint32(head)
	if uint64(n) > uint64(limit) {
		return 0, fmt.Errorf("%w: a frame of %d bytes", errFrame, n)
	}
	return int(n), nil
}

// readFrame reads a frame with a body of at most limit bytes. Memory for a large
// body is taken as it arrives, not as it is announced.
func readFrame(r *bufio.Reader, limit int) (f frame, err error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return f, err
	}
	n, err := bodyLen(head[:], limit)
	if err != nil {
		return f, err
	}
	f.kind, f.id = head[4], binary.BigEndian.Uint64(head[5:])
	if n <= trustedLen {
		f.body = make([]byte, n)
		_, err = io.ReadFull(r, f.body)
	} else {
		var b bytes.Buffer
		_, err = io.CopyN(&b, r, int64(n))
		f.body = b.Bytes()
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return f, err
}

// callHeader is what goes with the input of a call: the operation, and what the
// caller's context holds.
type callHeader struct {
	Op       string       `json:"op"`
	Access   *loci.Access `json:"access,omitempty"`    // null: everything
	Redact   bool         `json:"redact,omitempty"`    // loci.WithRedaction
	Progress bool         `json:"progress,omitempty"`  // somebody listens to it
	WithinUS int64        `json:"within_us,omitempty"` // time that is left; 0: no end
}

// appendCall writes the frame of a call.
func appendCall(b []byte, id uint64, h callHeader, raw []byte) ([]byte, error) {
	head, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	return appendFrame(b, kindCall, id, binary.BigEndian.AppendUint32(nil, uint32(len(head))), head, raw), nil
}

// decodeCall takes the body of a call apart. A field that is not known is an
// error: it may have been meant to forbid something.
func decodeCall(body []byte) (h callHeader, raw []byte, err error) {
	if len(body) < 4 {
		return h, nil, fmt.Errorf("%w: a call without a header", errFrame)
	}
	n := binary.BigEndian.Uint32(body)
	body = body[4:]
	if n > maxHeader || uint64(n) > uint64(len(body)) {
		return h, nil, fmt.Errorf("%w: the header of a call has %d bytes", errFrame, n)
	}
	dec := json.NewDecoder(bytes.NewReader(body[:n]))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&h); err != nil {
		return h, nil, fmt.Errorf("%w: the header of a call is no such: %w", errFrame, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return h, nil, fmt.Errorf("%w: more than a header", errFrame)
	}
	return h, body[n:], nil
}

// appendProgress writes the frame of a call's progress.
func appendProgress(b []byte, id uint64, done, total int64) []byte {
	body := binary.BigEndian.AppendUint64(nil, uint64(done))
	return appendFrame(b, kindProgress, id, binary.BigEndian.AppendUint64(body, uint64(total)))
}

func decodeProgress(body []byte) (done, total int64, err error) {
	if len(body) != 16 {
		return 0, 0, fmt.Errorf("%w: progress of %d bytes", errFrame, len(body))
	}
	return int64(binary.BigEndian.Uint64(body)), int64(binary.BigEndian.Uint64(body[8:])), nil
}
