package local

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"reflect"
	"runtime"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/op"
	"pgregory.net/rapid"
)

// TestFrames holds that what was written is read again, frame after frame, and
// that a stream that breaks off anywhere is an error.
func TestFrames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var stream []byte
		var want []frame
		for range rapid.IntRange(0, 5).Draw(t, "frames") {
			f := frame{
				kind: rapid.Byte().Draw(t, "kind"), id: rapid.Uint64().Draw(t, "id"),
				body: rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "body"),
			}
			if rapid.IntRange(0, 9).Draw(t, "large") == 0 {
				f.body = bytes.Repeat([]byte{7}, trustedLen+rapid.IntRange(0, 2).Draw(t, "more"))
			}
			stream = appendFrame(stream, f.kind, f.id, f.body[:len(f.body)/2], f.body[len(f.body)/2:])
			want = append(want, f)
		}
		r := bufio.NewReader(bytes.NewReader(stream))
		for _, w := range want {
			got, err := readFrame(r, maxAnswer)
			if err != nil || got.kind != w.kind || got.id != w.id || !bytes.Equal(got.body, w.body) {
				t.Fatalf("%v %d %d %d bytes", err, got.kind, got.id, len(got.body))
			}
		}
		if _, err := readFrame(r, maxAnswer); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if len(want) == 0 {
			return
		}
		last := appendFrame(nil, want[0].kind, want[0].id, want[0].body)
		cut := rapid.IntRange(1, len(last)-1).Draw(t, "cut")
		if _, err := readFrame(bufio.NewReader(bytes.NewReader(last[:cut])), maxAnswer); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("a frame of which %d of %d bytes came: %v", cut, len(last), err)
		}
	})
}

// TestFrameLimit holds that a length beyond the limit is refused before anything
// is read, and one within it takes memory only as it comes.
func TestFrameLimit(t *testing.T) {
	head := appendFrame(nil, kindCall, 1, make([]byte, 101))
	if _, err := readFrame(bufio.NewReader(bytes.NewReader(head)), 100); !errors.Is(err, errFrame) {
		t.Error(err)
	}
	announced := []byte{0x0f, 0xff, 0xff, 0xff, kindCall, 0, 0, 0, 0, 0, 0, 0, 1, 'x'}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 10 {
		if _, err := readFrame(bufio.NewReader(bytes.NewReader(announced)), maxAnswer); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Error(err)
		}
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 100<<20 {
		t.Errorf("%d bytes for ten frames of which a byte each came", n)
	}
}

// TestCallHeader holds that what a context carries comes back, and that what is
// not known is refused.
func TestCallHeader(t *testing.T) {
	for _, h := range []callHeader{
		{Op: "health"},
		{Op: "recall", Access: &loci.Access{}},
		{Op: "recall", Access: &loci.Access{Admin: true, Grants: []loci.Grant{{Namespace: "灯", Scopes: []string{loci.Every}, Write: true}}}, Redact: true, Progress: true, WithinUS: 77},
	} {
		b, err := appendCall(nil, 9, h, []byte(`{"a":1}`))
		if err != nil {
			t.Fatal(err)
		}
		got, raw, err := decodeCall(b[frameHead:])
		if err != nil || string(raw) != `{"a":1}` || !reflect.DeepEqual(got, h) {
			t.Errorf("%+v became %+v with %s: %v", h, got, raw, err)
		}
	}
	for name, body := range map[string]string{
		"empty":         "",
		"short":         "\x00\x00\x00",
		"too long":      "\x00\x00\x00\x03{}",
		"huge":          "\xff\xff\xff\xff{}",
		"no JSON":       "\x00\x00\x00\x02{x",
		"two":           "\x00\x00\x00\x04{}{}",
		"unknown field": "\x00\x00\x00\x13{\"op\":\"x\",\"less\":1}",
		"wrong type":    "\x00\x00\x00\x08{\"op\":1}",
	} {
		if _, _, err := decodeCall([]byte(body)); !errors.Is(err, errFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFailures holds that an error is shown the same on both sides of the socket.
func TestFailures(t *testing.T) {
	for _, err := range []error{
		errs.Invalid("filter.scopes", "must not be empty"),
		errs.WithOp("recall", errors.New("disk on fire")),
		errors.New("no code at all"),
		errs.WithOp("x", errs.Wrap(errs.Conflict, errs.Wrap(errs.IO, io.ErrShortWrite, "inner"), "outer")),
		loci.ErrNotFound,
		&explained{errs.New(errs.StaleRevision, "is 7 now"), "version_conflict", map[string]any{"current": int64(9007199254740993), "half": 0.5, "names": []string{"a"}}},
	} {
		body, encErr := encodeFailure(err)
		if encErr != nil {
			t.Fatal(encErr)
		}
		got, decErr := decodeFailure(body)
		if decErr != nil {
			t.Fatal(decErr)
		}
		again, encErr := encodeFailure(got)
		if encErr != nil || !bytes.Equal(body, again) {
			t.Errorf("%v:\n%s\n%s %v", err, body, again, encErr)
		}
		if op.ExitCode(err) != op.ExitCode(got) || op.OutcomeOf(err).Status != op.OutcomeOf(got).Status || !errors.Is(got, op.OutcomeOf(err).Code) {
			t.Errorf("%v became %v", err, got)
		}
	}
	for _, body := range []string{"", "{", "{}", "[]", `{"code":7}`} {
		if _, err := decodeFailure([]byte(body)); !errors.Is(err, errFrame) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// FuzzFrames feeds anything to all that decodes. Nothing may panic, and what is
// taken must be written as it was read.
func FuzzFrames(f *testing.F) {
	call, err := appendCall(nil, 3, callHeader{Op: "health", Access: &loci.Access{Admin: true}}, []byte("{}"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(call)
	f.Add(appendProgress(nil, 1, 2, 3))
	f.Add(appendFrame(nil, kindFailure, 4, []byte(`{"code":"locked","message":"m","reason":"r","details":{"n":1}}`)))
	f.Add(appendFrame(nil, kindHello, 0, []byte(`{"protocol":1,"secret":"s"}`)))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 2})
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := bufio.NewReader(bytes.NewReader(stream))
		for at := 0; ; {
			f, err := readFrame(r, 1<<20)
			if err != nil {
				return
			}
			if b := appendFrame(nil, f.kind, f.id, f.body); !bytes.Equal(b, stream[at:at+len(b)]) {
				t.Fatalf("%x was read as %x", stream[at:], b)
			} else {
				at += len(b)
			}
			var h hello
			var w welcome
			if readHello(f, &h) == nil && f.kind != kindHello || readHello(f, &w) == nil && f.kind != kindHello {
				t.Fatalf("a hello of kind %d", f.kind)
			}
			if h, raw, err := decodeCall(f.body); err == nil {
				b, err := appendCall(nil, f.id, h, raw)
				if err != nil {
					t.Fatal(err)
				}
				again, rawAgain, err := decodeCall(b[frameHead:])
				if err != nil || !reflect.DeepEqual(h, again) || !bytes.Equal(raw, rawAgain) {
					t.Fatalf("%+v became %+v: %v", h, again, err)
				}
			}
			if e, err := decodeFailure(f.body); err == nil && loci.CodeOf(e) == "" {
				t.Fatalf("an error without a code: %v", e)
			}
			if done, total, err := decodeProgress(f.body); err == nil && !bytes.Equal(appendProgress(nil, 0, done, total)[frameHead:], f.body) {
				t.Fatalf("%x is %d of %d", f.body, done, total)
			}
		}
	})
}
