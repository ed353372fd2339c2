package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
)

func TestWatch(t *testing.T) {
	var asked []string
	answer := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			var in ChangesInput
			if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.WaitMS == nil || *in.WaitMS != longPoll {
				t.Errorf("%+v %v", in, err)
			}
			asked = append(asked, in.After)
			fmt.Fprint(w, body)
		}
	}
	c, _, _ := serve(t, nil, answer(`{"items":[],"next":"4"}`), answer(`{"items":[{"id":"7","kind":"memory","change":"upsert"},{"id":"8"}],"next":"5"}`),
		answer(`{"items":[],"next":"9","floor_lost":true}`), answer(`{"items":[{"id":"9"}],"next":"10"}`),
		status(http.StatusForbidden, "", `{"code":"forbidden","detail":"no"}`))
	var got []string
	var last error
	for found, err := range c.Watch(t.Context(), ChangesInput{After: "3"}) {
		if last = err; err != nil {
			continue
		}
		got = append(got, fmt.Sprintf("%d to %s %v", len(found.Items), found.Next, found.FloorLost))
	}
	if fmt.Sprint(got) != "[2 to 5 false 0 to 9 true 1 to 10 false]" || fmt.Sprint(asked) != "[3 4 5 9]" || !errors.Is(last, ErrForbidden) {
		t.Errorf("got %v, asked %v, %v", got, asked, last)
	}
	c, calls, _ := serve(t, nil, ok(`{"items":[{"id":"9"}],"next":"10"}`))
	for range c.Watch(t.Context(), ChangesInput{}) {
		break
	}
	if calls.Load() != 1 {
		t.Errorf("asked %d times", calls.Load())
	}
}
