package pager

import (
	_ "embed"
	"encoding/json"
	"slices"
	"sync"
	"time"
)

// Profile says how a provider's prompt cache behaves and what it costs, as far
// as that is known. Such facts drift: AsOf is when they were collected.
type Profile struct {
	ID              string  `json:"id"`                // such as "anthropic-5m"
	Provider        string  `json:"provider"`          // whose usage objects go with it, as RecordUsage takes them
	Models          string  `json:"models"`            // which models it is for, in words
	MinPrefixTokens int     `json:"min_prefix_tokens"` // below this nothing is cached, without an error; 0 when none is stated
	LifetimeSeconds int     `json:"lifetime_seconds"`  // of an entry from its last use
	ReadRatio       float64 `json:"read_ratio"`        // price of a token read from the cache, over that of an input token
	WriteRatio      float64 `json:"write_ratio"`       // price of a token written to the cache, over that of an input token
	Matches         string  `json:"matches"`           // what can be reused, in words
	Notes           string  `json:"notes"`             // what the numbers leave out
	AsOf            string  `json:"as_of"`             // date of these facts, YYYY-MM-DD
}

//go:embed providers.json
var providersJSON []byte

// profiles are the profiles of providers.json. A test reads the file, so that
// one which cannot be read is never built.
var profiles = sync.OnceValue(func() []Profile {
	var file struct {
		AsOf     string    `json:"as_of"`
		Profiles []Profile `json:"profiles"`
	}
	if err := json.Unmarshal(providersJSON, &file); err != nil {
		panic("pager: providers.json: " + err.Error())
	}
	for i := range file.Profiles {
		file.Profiles[i].AsOf = file.AsOf
	}
	return file.Profiles
})

// Profiles gives the profiles of providers that are known.
func Profiles() []Profile { return slices.Clone(profiles()) }

// profileOf finds a profile by its id.
func profileOf(id string) (Profile, bool) {
	all := profiles()
	i := slices.IndexFunc(all, func(p Profile) bool { return p.ID == id })
	if i < 0 {
		return Profile{}, false
	}
	return all[i], true
}

// profileNames are the ids of the profiles, for messages.
func profileNames() (names []string) {
	for _, p := range profiles() {
		names = append(names, p.ID)
	}
	return names
}

func (p *Profile) lifetime() time.Duration { return time.Duration(p.LifetimeSeconds) * time.Second }
