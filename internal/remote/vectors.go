package remote

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// IndexedVectors reads an answer {"data": [{"index": i, "embedding": v}, ...]}
// with n vectors, each a list of numbers or the base64 form of little-endian
// float32s, and puts each in the place that its index names.
func IndexedVectors(answer []byte, n int) ([][]float32, error) {
	var body struct {
		Data []struct {
			Index     *int            `json:"index"`
			Embedding json.RawMessage `json:"embedding"`
		} `json:"data"`
	}
	if err := json.Unmarshal(answer, &body); err != nil {
		return nil, Unreadable(err)
	}
	if len(body.Data) != n {
		return nil, fmt.Errorf("%d vectors for %d texts", len(body.Data), n)
	}
	out := make([][]float32, n)
	for _, d := range body.Data {
		if err := place(d.Index, n, func(i int) bool { return out[i] != nil }); err != nil {
			return nil, err
		}
		v, err := vector(d.Embedding)
		if err != nil {
			return nil, fmt.Errorf("vector %d: %w", *d.Index, err)
		}
		out[*d.Index] = v
	}
	return out, nil
}

// Vectors reads n vectors, in the order of the texts, from rows as
// IndexedVectors reads an embedding.
func Vectors(rows []json.RawMessage, n int) ([][]float32, error) {
	if len(rows) != n {
		return nil, fmt.Errorf("%d vectors for %d texts", len(rows), n)
	}
	out := make([][]float32, n)
	for i, row := range rows {
		v, err := vector(row)
		if err != nil {
			return nil, fmt.Errorf("vector %d: %w", i, err)
		}
		out[i] = v
	}
	return out, nil
}

// place checks the index of one of n results.
func place(index *int, n int, taken func(int) bool) error {
	switch {
	case index == nil:
		return errors.New("a result without an index")
	case *index < 0 || *index >= n:
		return fmt.Errorf("a result with the index %d, of %d", *index, n)
	case taken(*index):
		return fmt.Errorf("two results with the index %d", *index)
	}
	return nil
}

// vector reads one vector of finite numbers, not empty.
func vector(raw json.RawMessage) ([]float32, error) {
	var out []float32
	var err error
	switch {
	case len(raw) == 0:
		return nil, errors.New("it is missing")
	case raw[0] == '"':
		out, err = packed(raw)
	case raw[0] == '[':
		out, err = numbers(raw)
	default:
		return nil, errors.New("it is neither a list of numbers nor base64")
	}
	if err != nil {
		return nil, err
	}
	if len(out) == 0 {
		return nil, errors.New("it is empty")
	}
	for i, x := range out {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return nil, fmt.Errorf("number %d is not finite", i)
		}
	}
	return out, nil
}

func packed(raw json.RawMessage) ([]float32, error) {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil, Unreadable(err)
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("it is not base64")
	}
	if len(data)%4 != 0 {
		return nil, fmt.Errorf("its %d bytes are no whole number of float32s", len(data))
	}
	out := make([]float32, len(data)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out, nil
}

// numbers reads a JSON array of numbers by hand: encoding/json would take null
// for 0, and pointers that tell the two apart cost an allocation a number. raw
// is known to be valid JSON.
func numbers(raw json.RawMessage) ([]float32, error) {
	out := make([]float32, 0, len(raw)/10)
	for i := 1; i < len(raw); {
		switch c := raw[i]; {
		case c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == ',' || c == ']':
			i++
		case c == '-' || c >= '0' && c <= '9':
			end := i + 1
			for end < len(raw) && (raw[end] >= '0' && raw[end] <= '9' || raw[end] == '.' || raw[end] == 'e' || raw[end] == 'E' ||
				raw[end] == '+' || raw[end] == '-') {
				end++
			}
			x, err := strconv.ParseFloat(string(raw[i:end]), 32)
			if err != nil {
				return nil, fmt.Errorf("number %d is out of range", len(out))
			}
			out = append(out, float32(x))
			i = end
		default:
			return nil, fmt.Errorf("element %d is not a number", len(out))
		}
	}
	return out, nil
}

// Unreadable words a decoder's error, which may repeat what it was given, in
// terms of where alone.
func Unreadable(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Errorf("the answer has a JSON %s in the place of another type, at byte %d", kindOf(wrong.Value), wrong.Offset)
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("the answer is not JSON: %w, at byte %d", err, syntax.Offset)
	}
	return fmt.Errorf("the answer is not JSON: %w", err)
}

// kindOf cuts the value off that some decoders add to its kind.
func kindOf(value string) string {
	for i, r := range value {
		if r == ' ' {
			return value[:i]
		}
	}
	return value
}
