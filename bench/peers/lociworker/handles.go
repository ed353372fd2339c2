package lociworker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/loci-memory/loci/bench/peers/protocol"
)

// handles say which memory a record became, and the other way round: the store
// chooses the ids of memories itself. They lie in two files of eight bytes a place,
// so that they take nothing of the memory that is measured; both hold the number
// plus one, and nothing where there is none.
type handles struct {
	memories *os.File // by record
	records  *os.File // by memory
}

func openHandles(dir string) (*handles, error) {
	h := &handles{}
	for _, f := range []struct {
		to   **os.File
		name string
	}{{&h.memories, "memories"}, {&h.records, "records"}} {
		file, err := os.OpenFile(filepath.Join(dir, f.name), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, errors.Join(err, h.close())
		}
		*f.to = file
	}
	return h, nil
}

func (h *handles) close() error {
	if h == nil {
		return nil
	}
	var failed []error
	for _, f := range []*os.File{h.memories, h.records} {
		if f != nil {
			failed = append(failed, f.Close())
		}
	}
	return errors.Join(failed...)
}

// put keeps which memories records became.
func (h *handles) put(records []protocol.Record, memories []int64) error {
	if len(records) != len(memories) {
		return fmt.Errorf("%d records became %d memories", len(records), len(memories))
	}
	for i, r := range records {
		if err := write(h.memories, int64(r.ID), memories[i]); err != nil {
			return err
		}
		if err := write(h.records, memories[i], int64(r.ID)); err != nil {
			return err
		}
	}
	return nil
}

// memory is the one that a record became.
func (h *handles) memory(record int) (int64, error) { return read(h.memories, int64(record)) }

// record is the one that became a memory.
func (h *handles) record(memory int64) (int64, error) { return read(h.records, memory) }

func write(f *os.File, place, number int64) error {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(number)+1)
	_, err := f.WriteAt(b[:], 8*place)
	return err
}

func read(f *os.File, place int64) (int64, error) {
	var b [8]byte
	if _, err := f.ReadAt(b[:], 8*place); err != nil {
		return 0, fmt.Errorf("%s of %d: %w", filepath.Base(f.Name()), place, err)
	}
	number := binary.LittleEndian.Uint64(b[:])
	if number == 0 {
		return 0, fmt.Errorf("%s knows nothing of %d", filepath.Base(f.Name()), place)
	}
	return int64(number - 1), nil
}
