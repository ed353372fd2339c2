package eval

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/loci-memory/loci/embed"
)

// A Cache is an embedder that remembers what another one gave, so that tuning
// embeds nothing twice. It is safe for concurrent use, and may be used while the
// store that it is bound to is open; Close comes after that.
type Cache struct {
	inner embed.Embedder

	mu      sync.Mutex
	vectors map[textKey][]float32
	file    *os.File // what is remembered over runs; nil for nothing
	err     error    // the first one of the file

	texts int
	took  time.Duration
}

// textKey is a hash of a purpose and a text.
type textKey [16]byte

func keyOf(text string, p embed.Purpose) textKey {
	sum := sha256.Sum256([]byte(string(p) + "\x00" + text))
	return textKey(sum[:16])
}

// NewCache makes a cache before an embedder of vectors of a dimension. With a
// folder, which is made if need be, it is kept in a file of that folder by the
// model's id. An id must change when the model's vectors do.
func NewCache(inner embed.Embedder, id string, dimension int, folder string) (*Cache, error) {
	c := &Cache{inner: inner, vectors: map[textKey][]float32{}}
	if folder == "" {
		return c, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("eval: the cache: %w", err)
	}
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-':
			return r
		}
		return '_'
	}, id)
	f, err := os.OpenFile(filepath.Join(folder, fmt.Sprintf("%s.%d", name, dimension)), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("eval: the cache: %w", err)
	}
	c.file = f
	if err := c.read(dimension); err != nil {
		return nil, fmt.Errorf("eval: the cache: %w", errors.Join(err, f.Close()))
	}
	return c, nil
}

// read takes in what earlier runs left. A piece that was cut off by the end of
// one is written over.
func (c *Cache) read(dimension int) error {
	record := make([]byte, len(textKey{})+4*dimension)
	r := bufio.NewReaderSize(c.file, 1<<20)
	end := int64(0)
	for {
		_, err := io.ReadFull(r, record)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			_, err = c.file.Seek(end, io.SeekStart)
			return err
		}
		if err != nil {
			return err
		}
		end += int64(len(record))
		v := make([]float32, dimension)
		for i := range v {
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(record[len(textKey{})+4*i:]))
		}
		c.vectors[textKey(record)] = v
	}
}

// Embed implements embed.Embedder.
func (c *Cache) Embed(ctx context.Context, texts []string, purpose embed.Purpose) ([][]float32, error) {
	out := make([][]float32, len(texts))
	var missing []string
	var places []int
	c.mu.Lock()
	for i, text := range texts {
		if out[i] = c.vectors[keyOf(text, purpose)]; out[i] == nil {
			missing, places = append(missing, text), append(places, i)
		}
	}
	c.mu.Unlock()
	if len(missing) == 0 {
		return out, nil
	}
	begin := time.Now()
	vectors, err := c.inner.Embed(ctx, missing, purpose)
	took := time.Since(begin)
	if err != nil {
		return nil, err
	}
	if len(vectors) != len(missing) {
		return nil, fmt.Errorf("eval: %d vectors for %d texts", len(vectors), len(missing))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.texts += len(missing)
	c.took += took
	for i, v := range vectors {
		out[places[i]] = v
		c.keep(keyOf(missing[i], purpose), v)
	}
	return out, nil
}

func (c *Cache) keep(key textKey, v []float32) {
	if c.vectors[key] != nil {
		return
	}
	c.vectors[key] = v
	if c.file == nil || c.err != nil {
		return
	}
	record := append([]byte{}, key[:]...)
	for _, x := range v {
		record = binary.LittleEndian.AppendUint32(record, math.Float32bits(x))
	}
	_, c.err = c.file.Write(record)
}

// Limit implements embed.Limiter.
func (c *Cache) Limit(text string, purpose embed.Purpose) (kept string, cut bool) {
	if l, ok := c.inner.(embed.Limiter); ok {
		return l.Limit(text, purpose)
	}
	return text, false
}

// Cost says how many texts the embedder itself was given and how long that took
// it.
func (c *Cache) Cost() (texts int, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.texts, c.took
}

// Close closes the file and says whether it took everything.
func (c *Cache) Close() error {
	if c.file == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := errors.Join(c.err, c.file.Close()); err != nil {
		return fmt.Errorf("eval: the cache: %w", err)
	}
	return nil
}
