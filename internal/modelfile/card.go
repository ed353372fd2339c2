package modelfile

import (
	"encoding/json"
	"fmt"
)

// SectionCard is the name of the section that holds the Card.
const SectionCard = "card"

// A Card says what a model is. It is kept as JSON.
type Card struct {
	Name    string `json:"name"`    // what the model is called, without its version
	Version string `json:"version"` // changes whenever any text's vector does
	Licence string `json:"licence"` // SPDX expression of the weights
	Source  string `json:"source"`  // where the weights come from, for people
	SHA256  string `json:"sha256"`  // of the file they were converted from, in hex

	Dimension int    `json:"dimension"`         // values of a vector
	MaxTokens int    `json:"max_tokens"`        // of a text, specials included; 0: no limit
	Query     string `json:"query,omitempty"`   // what stands before a question
	Passage   string `json:"passage,omitempty"` // what stands before a text to be found

	// Shape of the encoder; all zero where there is none.
	Layers       int     `json:"layers,omitempty"`
	Heads        int     `json:"heads,omitempty"`
	Intermediate int     `json:"intermediate,omitempty"` // width of the feed-forward part
	Epsilon      float32 `json:"epsilon,omitempty"`      // what layer norms add to the variance
}

// Card reads the file's card. Errors wrap ErrFormat.
func (f *File) Card() (Card, error) {
	s, err := f.Need(SectionCard)
	if err != nil {
		return Card{}, err
	}
	var c Card
	if err := json.Unmarshal([]byte(s[0]), &c); err != nil {
		return Card{}, fmt.Errorf("%w: its card: %w", ErrFormat, err)
	}
	if c.Name == "" || c.Version == "" || c.Dimension <= 0 || c.MaxTokens < 0 {
		return Card{}, fmt.Errorf("%w: its card says %+v", ErrFormat, c)
	}
	return c, nil
}

// Section is the section that holds the card.
func (c Card) Section() (Section, error) {
	b, err := json.Marshal(c)
	if err != nil {
		return Section{}, fmt.Errorf("the card of %s: %w", c.Name, err)
	}
	return Section{SectionCard, string(b)}, nil
}
