package loci

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/internal/errs"
)

// hostileBox is a folder of notes beside a secret, with links that lead to it.
func hostileBox(t *testing.T) (b *noteBox, outside string) {
	b = newNoteBox(t)
	outside = t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "x.md"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.file("a/x.md", "mine")
	b.file("x.md", "mine")
	for name, target := range map[string]string{"out": outside, "a/up": "..", "a/out.md": filepath.Join(outside, "x.md"), "self": "."} {
		if err := os.Symlink(target, filepath.Join(b.dir, filepath.FromSlash(name))); err != nil {
			t.Skip("no symbolic links here")
		}
	}
	return b, outside
}

// TestHostilePaths puts paths together at random and holds that none reads what
// lies outside the root.
func TestHostilePaths(t *testing.T) {
	b, outside := hostileBox(t)
	folder, err := openNoteFolder(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.close()
	rng := rand.New(rand.NewPCG(5, 5))
	pieces := []string{"..", ".", "", "a", "out", "up", "self", "x.md", "out.md", filepath.Base(b.dir), filepath.Base(outside), "\\", "C:", "x.md\x00", "~"}
	starts := []string{"", "/", b.dir, outside, filepath.Dir(b.dir), b.dir + "x", folder.real}
	read := 0
	for range 20_000 {
		parts := []string{starts[rng.IntN(len(starts))]}
		for range rng.IntN(5) {
			parts = append(parts, pieces[rng.IntN(len(pieces))])
		}
		path := strings.Join(parts, "/")
		rel, err := folder.resolve(path)
		if err != nil {
			if code := errs.CodeOf(err); code != errs.Validation && code != errs.IO {
				t.Fatalf("%q: %v", path, err)
			}
			continue
		}
		if !filepath.IsLocal(rel) || slices.Contains(strings.Split(rel, "/"), "..") {
			t.Fatalf("%q gives %q", path, rel)
		}
		content, err := folder.read(rel)
		if err != nil {
			continue // a folder
		}
		read++
		if string(content.data) != "mine" {
			t.Fatalf("%q reads %q", path, content.data)
		}
	}
	if read == 0 {
		t.Error("nothing was ever read: the test shows nothing")
	}
}

// TestExchangedLink exchanges a file for a link that leads outside, over and
// over, while it is brought in.
func TestExchangedLink(t *testing.T) {
	b, outside := hostileBox(t)
	target := filepath.Join(b.dir, "x.md")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		temp := filepath.Join(b.dir, ".temp")
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			os.Remove(temp)
			if i%2 == 0 {
				os.Symlink(filepath.Join(outside, "x.md"), temp)
			} else {
				os.WriteFile(temp, []byte("mine"), 0o600)
			}
			os.Rename(temp, target)
		}
	}()
	done := 0
	for range 300 {
		_, err := b.db.Notes().UpsertFile(t.Context(), NoteFileInput{Path: "x.md"})
		if err == nil {
			done++
		}
	}
	for range 20 {
		b.sync(SyncOptions{})
	}
	close(stop)
	<-stopped
	if hits := b.find("secret"); len(hits) != 0 {
		t.Errorf("%+v", hits)
	}
	if done == 0 {
		t.Log("the file was never there when it was looked for")
	}
}
