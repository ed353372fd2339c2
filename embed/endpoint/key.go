package endpoint

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

const (
	redacted   = "[redacted]"
	maxKeySize = 16 << 10 // bytes of a key file
)

// A Key is a secret that lets its holder use a service. However it is printed,
// marshalled or dumped, it shows nothing; its zero value is no key.
type Key struct {
	// A function, so that no printer that walks through fields finds the text.
	reveal func() string
}

// NewKey makes a key of a secret. White space around it is not part of it; of
// nothing else it makes the zero key.
func NewKey(secret string) Key {
	secret = strings.TrimSpace(secret)
	if secret == "" {
		return Key{}
	}
	return Key{reveal: func() string { return secret }}
}

// KeyFromEnv reads a key from an environment variable. lookup is os.LookupEnv,
// or what stands in for it. A variable that is unset or blank is an error.
func KeyFromEnv(name string, lookup func(string) (string, bool)) (Key, error) {
	value, ok := lookup(name)
	if !ok {
		return Key{}, fmt.Errorf("no API key: the environment variable %s is not set", name)
	}
	key, err := oneLine(value)
	if err != nil {
		return Key{}, fmt.Errorf("no API key: the environment variable %s %w", name, err)
	}
	return key, nil
}

// KeyFromFile reads a key from a file that holds nothing else but white space
// around it.
func KeyFromFile(path string) (Key, error) {
	f, err := os.Open(path)
	if err != nil {
		return Key{}, fmt.Errorf("no API key: %w", err)
	}
	defer f.Close() // only read from: closing it has nothing to report
	data, err := io.ReadAll(io.LimitReader(f, maxKeySize+1))
	if err != nil {
		return Key{}, fmt.Errorf("no API key: %w", err)
	}
	if len(data) > maxKeySize {
		return Key{}, fmt.Errorf("no API key: the file %s is longer than any key", path)
	}
	key, err := oneLine(string(data))
	if err != nil {
		return Key{}, fmt.Errorf("no API key: the file %s %w", path, err)
	}
	return key, nil
}

func oneLine(s string) (Key, error) {
	key := NewKey(s)
	if key.IsZero() {
		return Key{}, errors.New("is empty")
	}
	if !key.Valid() {
		return Key{}, errors.New("holds more than one line or bytes that no key has")
	}
	return key, nil
}

// IsZero says whether there is no key.
func (k Key) IsZero() bool { return k.reveal == nil }

// Valid says whether the key can stand in a request: it is zero, or printable
// ASCII without spaces.
func (k Key) Valid() bool {
	for _, b := range []byte(k.Reveal()) {
		if b <= ' ' || b > '~' {
			return false
		}
	}
	return true
}

// Reveal gives the secret, "" for the zero key. It is for whoever builds a
// request, and for nobody who writes anything down.
func (k Key) Reveal() string {
	if k.reveal == nil {
		return ""
	}
	return k.reveal()
}

// String gives "[redacted]", or "" for the zero key.
func (k Key) String() string {
	if k.IsZero() {
		return ""
	}
	return redacted
}

// GoString is String, for %#v.
func (k Key) GoString() string { return k.String() }

// Format writes String, whatever the verb.
func (k Key) Format(f fmt.State, _ rune) {
	// A printer has nobody to report a failed write to.
	_, _ = io.WriteString(f, k.String())
}

// MarshalText gives String.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// MarshalJSON gives String as a JSON string.
func (k Key) MarshalJSON() ([]byte, error) { return []byte(`"` + k.String() + `"`), nil }
