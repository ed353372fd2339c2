package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loci-memory/loci"
)

// poster posts operations over HTTP.
type poster struct {
	url    string
	client *http.Client
}

func newPoster(url string, connections int) *poster {
	return &poster{url, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}}
}

// post runs an operation and reads its answer whole; into may be nil.
func (p *poster) post(ctx context.Context, name string, raw []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url+"/v1/"+name, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s: %s", name, resp.Status, body)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(body, into)
}

// mcp starts the server of standard input and output again and again.
func (r *surfacesRun) mcp() error {
	queries := r.queries(r.Starts + 1)
	var initialize, recall, exit []time.Duration
	for i := range r.Starts + 1 {
		took, err := r.mcpOnce(queries[i])
		if err != nil {
			return err
		}
		if i == 0 {
			continue // the program's own pages come from the disk
		}
		initialize, recall, exit = append(initialize, took[0]), append(recall, took[1]), append(exit, took[2])
	}
	r.report.MCP = &MCPReport{Starts: r.Starts, Initialize: newLatency(initialize), Recall: newLatency(recall), Exit: newLatency(exit)}
	return nil
}

// mcpOnce gives the times from the start to the answer to initialize, from there
// to that of a first recall, and from the end of standard input to the process's.
func (r *surfacesRun) mcpOnce(query string) (took [3]time.Duration, err error) {
	cmd := r.program("--quiet", "--data", r.Dir, "mcp")
	in, err := cmd.StdinPipe()
	if err != nil {
		return took, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return took, err
	}
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return took, err
	}
	lines := bufio.NewReader(out)
	call := func(id int, method string, params any) error {
		raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
		if err != nil {
			return err
		}
		if _, err := in.Write(append(raw, '\n')); err != nil {
			return err
		}
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return err
			}
			var answer struct {
				ID     *int
				Error  *struct{ Message string }
				Result struct{ IsError bool }
			}
			if err := json.Unmarshal(line, &answer); err != nil {
				return fmt.Errorf("standard output holds something else than the protocol: %w", err)
			}
			switch {
			case answer.ID == nil || *answer.ID != id:
				continue // a notification
			case answer.Error != nil:
				return errors.New(answer.Error.Message)
			case answer.Result.IsError:
				return fmt.Errorf("%s failed: %s", method, line)
			}
			return nil
		}
	}
	err = call(1, "initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "bench", "version": "1"},
	})
	took[0] = time.Since(begin)
	if err == nil {
		_, err = io.WriteString(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	}
	if err == nil {
		begin = time.Now()
		err = call(2, "tools/call", map[string]any{"name": "recall", "arguments": map[string]any{"query": query}})
		took[1] = time.Since(begin)
	}
	begin = time.Now()
	err = errors.Join(err, in.Close())
	rest, readErr := io.ReadAll(lines)
	err = errors.Join(err, readErr, cmd.Wait())
	took[2] = time.Since(begin)
	if err == nil && len(bytes.TrimSpace(rest)) > 0 && !json.Valid(bytes.TrimSpace(rest)) {
		err = errors.New("standard output ends with something else than the protocol")
	}
	return took, err
}

// underLoad has many clients at one server: of ten calls seven are recalls, one a
// list, one a read of one memory and one a new memory.
func (r *surfacesRun) underLoad() (err error) {
	cmd := r.program("--json", "--data", r.Dir, "serve", "--listen", "127.0.0.1:0")
	cmd.Stderr = nil // a line a request
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		stopErr := cmd.Process.Signal(os.Interrupt)
		err = errors.Join(err, stopErr, cmd.Wait())
	}()
	var ready struct{ URL string }
	if err := json.NewDecoder(out).Decode(&ready); err != nil {
		return err
	}
	client := newPoster(ready.URL, r.Clients)
	queries := r.queries(4 * r.Calls)
	var page loci.Page[struct {
		ID loci.ID `json:"id"`
	}]
	// The first recall waits for the model; the load is of a server that runs.
	if err := client.post(r.ctx, "recall", recallInput(queries[0]), nil); err != nil {
		return err
	}
	if err := client.post(r.ctx, "memories.list", []byte(`{"limit":200}`), &page); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.ctx, r.Load)
	defer cancel()
	var mu sync.Mutex
	samples := map[string][]time.Duration{}
	var firstErr error
	var failures, next atomic.Int64
	var clients sync.WaitGroup
	for range r.Clients {
		clients.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1))
				name, raw := "recall", recallInput(queries[i%len(queries)])
				switch i % 10 {
				case 3:
					name, raw = "memories.list", fmt.Appendf(nil, `{"limit":20,"after":"%d"}`, i)
				case 6:
					name, raw = "memories.get", fmt.Appendf(nil, `{"id":"%d"}`, page.Items[i%len(page.Items)].ID)
				case 9:
					name, raw = "remember", fmt.Appendf(nil, `{"text":"Load %d of run %d: %s"}`, i, time.Now().UnixNano(), strings.ReplaceAll(queries[i%len(queries)], `"`, ""))
				}
				begin := time.Now()
				// The request itself has no end: one that was cut off would be no error.
				err := client.post(r.ctx, name, raw, nil)
				took := time.Since(begin)
				mu.Lock()
				samples["all"] = append(samples["all"], took)
				samples[name] = append(samples[name], took)
				if err != nil {
					failures.Add(1)
					firstErr = errors.Join(firstErr, err)
				}
				mu.Unlock()
			}
		})
	}
	var memory []float64
	for tick := time.NewTicker(r.Load / 12); ; {
		select {
		case <-tick.C:
			memory = append(memory, residentMB(cmd.Process.Pid))
			continue
		case <-ctx.Done():
			tick.Stop()
		}
		break
	}
	clients.Wait()
	report := &LoadReport{Clients: r.Clients, Seconds: r.Load.Seconds(), Errors: int(failures.Load()), ResidentMB: memory, Calls: map[string]Latency{}}
	for name, s := range samples {
		report.Calls[name] = newLatency(s)
	}
	if firstErr != nil {
		report.FirstError = strings.SplitN(firstErr.Error(), "\n", 2)[0]
	}
	r.report.Load = report
	return nil
}

// residentMB is the resident memory of a process without mapped files; 0 where
// the system does not tell.
func residentMB(pid int) float64 {
	return float64(kilobytes(procField(fmt.Sprintf("/proc/%d/status", pid), "RssAnon"))) / 1024
}

// writers has two processes write to one new memory at once.
func (r *surfacesRun) writers() (err error) {
	dir, err := os.MkdirTemp("", "loci-bench-writers-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	begin := time.Now()
	var failed [2]error
	var both sync.WaitGroup
	for i := range failed {
		both.Go(func() {
			failed[i] = r.program("--quiet", "--data", dir, "bench", "surfaces-writer", fmt.Sprint(i), fmt.Sprint(r.Writes)).Run()
		})
	}
	both.Wait()
	took := time.Since(begin)
	if err := errors.Join(failed[:]...); err != nil {
		return err
	}
	db, err := loci.Open(r.ctx, dir, &loci.Options{WaitForIndex: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	health, err := db.Health(r.ctx)
	if err != nil {
		return err
	}
	r.report.Writers = &WritersReport{Processes: len(failed), Each: r.Writes, Found: int(health.RecordCount), Seconds: took.Seconds()}
	return nil
}
