package client

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// follow reads the events of a long-running operation: progress, and at last a
// result or a problem.
func follow(r io.Reader, name string, progress func(done, total int64)) (json.RawMessage, error) {
	lines := bufio.NewReaderSize(io.LimitReader(r, MaxAnswerBytes), 1<<16)
	var event string
	var data []byte
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) > 0 {
			field, value, _ := bytes.Cut(line, []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch string(field) {
			case "event":
				event = string(value)
			case "data":
				if data != nil {
					data = append(data, '\n')
				}
				data = append(data, value...)
			}
			continue
		}
		switch event { // a blank line ends an event
		case "progress":
			var p struct{ Done, Total int64 }
			if json.Unmarshal(data, &p) == nil && progress != nil {
				progress(p.Done, p.Total)
			}
		case "result":
			return data, nil
		case "problem":
			var p struct{ Status int }
			if err := json.Unmarshal(data, &p); err != nil {
				return nil, err
			}
			return nil, problem(name, p.Status, data)
		}
		event, data = "", nil
	}
}
