// Package tokens keeps who may use a server: a file with the hashes of tokens,
// the names they go by and what each of them may reach. A token itself is shown
// once, when it is made, and stored nowhere.
package tokens

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/valid"
)

// Limits of a file.
const (
	MaxTokens    = 10000
	MaxNameBytes = 64
	maxFileBytes = 16 << 20
)

// prefix makes a token recognisable, so that scanners for secrets find one that
// went astray.
const prefix = "loci_"

// Token is what is kept of a token.
type Token struct {
	Name      string      `json:"name"`       // for people and logs
	SHA256    string      `json:"sha256"`     // of the token, in lower-case hexadecimal digits
	CreatedAt string      `json:"created_at"` // RFC 3339, UTC
	Access    loci.Access `json:"access"`
}

// Set are the tokens of a file.
type Set struct {
	Tokens []Token `json:"tokens"`
}

// New makes a token of 256 random bits, adds its hash to the set and gives the
// token, which nothing keeps.
func (s *Set) New(name string, access loci.Access, now time.Time) (string, error) {
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		return "", errs.Wrap(errs.IO, err, "no random bytes for a token")
	}
	token := prefix + base64.RawURLEncoding.EncodeToString(secret)
	sum := sha256.Sum256([]byte(token))
	added := Set{append(slices.Clone(s.Tokens), Token{name, hex.EncodeToString(sum[:]), now.UTC().Format(time.RFC3339), access})}
	if err := added.check(); err != nil {
		return "", err
	}
	*s = added
	return token, nil
}

// Remove takes the token of a name out; false when there is none.
func (s *Set) Remove(name string) bool {
	before := len(s.Tokens)
	s.Tokens = slices.DeleteFunc(s.Tokens, func(t Token) bool { return t.Name == name })
	return len(s.Tokens) < before
}

// check refuses a set that could mean something else than was meant.
func (s *Set) check() error {
	if len(s.Tokens) > MaxTokens {
		return errs.Invalid("tokens", "has %d entries, at most %d are allowed", len(s.Tokens), MaxTokens)
	}
	names, hashes := map[string]bool{}, map[string]bool{}
	for i := range s.Tokens {
		t := &s.Tokens[i]
		if err := valid.Label("name", t.Name, MaxNameBytes); err != nil {
			return err
		}
		if names[t.Name] {
			return errs.New(errs.Conflict, "there is a token %q already: remove it first, or choose another name", t.Name)
		}
		sum, err := hex.DecodeString(t.SHA256)
		if err != nil || len(sum) != sha256.Size || strings.ToLower(t.SHA256) != t.SHA256 {
			return errs.Invalid("sha256", "of token %q must be 64 hexadecimal digits in lower case", t.Name)
		}
		if hashes[t.SHA256] {
			return errs.Invalid("sha256", "of token %q is that of another one", t.Name)
		}
		names[t.Name], hashes[t.SHA256] = true, true
		for _, g := range t.Access.Grants {
			if err := checkGrant(g); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkGrant(g loci.Grant) error {
	if g.Namespace != loci.Every {
		if err := valid.Label("namespace", g.Namespace, loci.MaxNamespaceBytes); err != nil {
			return err
		}
	}
	if len(g.Scopes) == 0 {
		return errs.Invalid("scopes", "must name at least one scope, or %q for every one", loci.Every)
	}
	for _, scope := range g.Scopes {
		if scope == loci.Every {
			continue
		}
		if err := valid.Label("scopes", scope, loci.MaxScopeBytes); err != nil {
			return err
		}
	}
	return nil
}

// ParseGrant reads a grant as a command line names it: NAMESPACE[:SCOPE,SCOPE][:rw].
// Without scopes it is for every scope, without rw for reading; "*" is every
// namespace. A name with a colon or a comma in it can be granted in the file only.
func ParseGrant(text string) (loci.Grant, error) {
	parts := strings.Split(text, ":")
	g := loci.Grant{Scopes: []string{loci.Every}}
	if n := len(parts); n > 1 && parts[n-1] == "rw" {
		g.Write, parts = true, parts[:n-1]
	}
	if len(parts) > 2 {
		return g, errs.Invalid("grant", "must have the form NAMESPACE[:SCOPE,SCOPE][:rw]")
	}
	g.Namespace = parts[0]
	if len(parts) == 2 {
		g.Scopes = strings.Split(parts[1], ",")
	}
	return g, checkGrant(g)
}

// Parse reads the contents of a file.
func Parse(raw []byte) (*Set, error) {
	if len(raw) > maxFileBytes {
		return nil, errs.Invalid("", "has %d bytes, at most %d are read", len(raw), maxFileBytes)
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.DisallowUnknownFields()
	var s Set
	if err := dec.Decode(&s); err != nil {
		return nil, errs.Invalid("", "is not a file of tokens: it must hold one JSON object with the field tokens, as loci token new writes it")
	}
	if dec.More() {
		return nil, errs.Invalid("", "is not a file of tokens: there is more text behind the object")
	}
	return &s, s.check()
}

// Load reads a file. One that others than its owner can read or write is refused,
// where the system knows such a thing.
func Load(path string) (*Set, error) {
	s, _, err := load(path)
	return s, err
}

func load(path string) (*Set, fs.FileInfo, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, errs.Wrap(errs.IO, err, "the file of tokens %s cannot be read; loci token new makes one", path)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, errs.Wrap(errs.IO, err, "the file of tokens %s cannot be looked at", path)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, errs.Invalid("tokens", "%s is no regular file", path)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, nil, errs.Invalid("tokens", "%s may be read or written by others than its owner: chmod 600 %s", path, path)
	}
	if info.Size() > maxFileBytes {
		return nil, nil, errs.Invalid("tokens", "%s has %d bytes, at most %d are read", path, info.Size(), maxFileBytes)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, errs.Wrap(errs.IO, err, "the file of tokens %s cannot be read", path)
	}
	s, err := Parse(raw)
	if err != nil {
		return nil, nil, errs.Wrap(errs.CodeOf(err), err, "the file of tokens %s", path)
	}
	return s, info, nil
}

// Save replaces a file, or makes it, so that a reader finds the old one or the new
// one whole. Only its owner can read it.
func (s *Set) Save(path string) error {
	if s.Tokens == nil {
		s.Tokens = []Token{}
	}
	raw, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return errs.Wrap(errs.Storage, err, "the tokens have no JSON form")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return errs.Wrap(errs.IO, err, "the folder of the file of tokens cannot be made")
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".tokens-*") // for its owner alone
	if err != nil {
		return errs.Wrap(errs.IO, err, "the file of tokens cannot be written")
	}
	_, err = f.Write(append(raw, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return errs.Wrap(errs.IO, err, "the file of tokens cannot be written")
}

// Keeper answers who a token belongs to, by a file that may change meanwhile.
type Keeper struct {
	path string

	mu   sync.Mutex
	info fs.FileInfo // of the file that was read
	set  *Set
}

// Keep reads a file and keeps an eye on it.
func Keep(path string) (*Keeper, error) {
	set, info, err := load(path)
	if err != nil {
		return nil, err
	}
	return &Keeper{path: path, info: info, set: set}, nil
}

// Find gives the token whose secret this is, nil for none. The file is read again
// when it has changed; as long as it cannot be read, nobody is let in, since what
// was read before may have been taken back.
func (k *Keeper) Find(secret string) (*Token, error) {
	set, err := k.current()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(secret))
	got := []byte(hex.EncodeToString(sum[:]))
	var found *Token
	for i := range set.Tokens { // all of them, so that the time tells nothing
		if subtle.ConstantTimeCompare(got, []byte(set.Tokens[i].SHA256)) == 1 {
			found = &set.Tokens[i]
		}
	}
	return found, nil
}

func (k *Keeper) current() (*Set, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	info, err := os.Stat(k.path)
	if err != nil {
		k.info = nil
		return nil, errs.Wrap(errs.IO, err, "the file of tokens cannot be looked at")
	}
	if k.info != nil && os.SameFile(info, k.info) && info.ModTime().Equal(k.info.ModTime()) && info.Size() == k.info.Size() &&
		info.Mode() == k.info.Mode() {
		return k.set, nil
	}
	k.info = nil
	set, info, err := load(k.path)
	if err != nil {
		return nil, err
	}
	k.set, k.info = set, info
	return set, nil
}
