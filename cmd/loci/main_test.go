package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/internal/cli"
)

// TestMain lets the test binary stand in for the program, so that a process
// can be started, interrupted and watched.
func TestMain(m *testing.M) {
	if os.Getenv("LOCI_TEST_AS_PROGRAM") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	dir := t.TempDir()
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "LOCI_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "LOCI_TEST_AS_PROGRAM=1", "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir, "GOCOVERDIR="+dir)
	return cmd
}

// TestServeProcess serves, is asked, is interrupted, and ends well.
func TestServeProcess(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be sent an interrupt here")
	}
	dir := filepath.Join(t.TempDir(), "data")
	cmd := program(t, "serve", "--listen", "127.0.0.1:0", "--data", dir, "--json")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var ready struct {
		URL  string `json:"url"`
		Data string `json:"data"`
	}
	if err := json.NewDecoder(out).Decode(&ready); err != nil {
		t.Fatal(err)
	}
	if ready.Data != dir {
		t.Errorf("data in %s", ready.Data)
	}
	resp, err := http.Post(ready.URL+"/v1/remember", "application/json", strings.NewReader(`{"text":"Nobody logs this."}`))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.StatusCode != 200 || !strings.Contains(string(body), "Nobody logs this.") {
		t.Errorf("%d %s %v", resp.StatusCode, body, err)
	}
	// Another process finds the data in use, and goes through the one that holds it
	// unless that is turned off.
	alone := program(t, "health", "--data", dir, "--wait", "0s", "--attach=false")
	if err := alone.Run(); alone.ProcessState.ExitCode() != 5 {
		t.Errorf("a process that must not attach: %v", err)
	}
	second, err := program(t, "recall", "logs", "--data", dir, "--wait", "0s", "--namespace", "default").Output()
	if err != nil || !strings.Contains(string(second), "Nobody logs this.") {
		t.Errorf("second process: %q %v", second, err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, log.String())
	}
	if strings.Contains(log.String(), "Nobody") {
		t.Errorf("the log holds record text: %s", log.String())
	}
	// What was answered is there.
	third := program(t, "memories", "list", "--data", dir, "--namespace", "default", "--json")
	list, err := third.Output()
	if err != nil || !strings.Contains(string(list), "Nobody logs this.") {
		t.Errorf("%s %v", list, err)
	}
}

// TestServeRefusesOtherAddresses holds exit code and message.
func TestServeRefusesOtherAddresses(t *testing.T) {
	var out, errOut bytes.Buffer
	d := deps([]string{"serve", "--listen", "0.0.0.0:0", "--data", t.TempDir()})
	d.Stdout, d.Stderr = &out, &errOut
	d.LookupEnv = func(string) (string, bool) { return "", false }
	if code := cli.Run(t.Context(), d); code != 2 || out.Len() > 0 || !strings.Contains(errOut.String(), "not a loopback address") {
		t.Errorf("exit %d, %q, %q", code, out.String(), errOut.String())
	}
}

// TestDemo holds that the demo runs from the command line.
func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("loads the whole corpus")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var out, errOut bytes.Buffer
	d := deps([]string{"demo", "--json", "--quiet"})
	d.Stdout, d.Stderr = &out, &errOut
	d.LookupEnv = func(string) (string, bool) { return "", false }
	if code := cli.Run(ctx, d); code != 0 || !json.Valid(out.Bytes()) || !strings.Contains(out.String(), "4 of 4 questions found their article") {
		t.Errorf("exit %d, %.500s, %s", code, out.String(), errOut.String())
	}
}

// TestBuiltin holds that the program finds by meaning as it comes: what was
// remembered in one language, asked for in the other, without a word on models.
func TestBuiltin(t *testing.T) {
	dir := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		var out, errOut bytes.Buffer
		d := deps(append([]string{"--data", dir}, args...))
		d.Stdout, d.Stderr = &out, &errOut
		d.LookupEnv = func(string) (string, bool) { return "", false }
		if code := cli.Run(t.Context(), d); code != 0 || strings.Contains(errOut.String(), "vectors") {
			t.Errorf("%v: exit %d, %s", args, code, errOut.String())
		}
		return out.String()
	}
	for _, how := range []string{"builtin", "static"} {
		for _, text := range []string{"The lamps of the harbour are lit at seven in the evening.", "My daughter is allergic to peanuts.", "The invoice was paid by bank transfer."} {
			run("--embedder", how, "remember", text)
		}
		run("--embedder", how, "embeddings", "sync")
		if got := run("--embedder", how, "recall", "孩子不能吃什么", "--limit", "1"); !strings.Contains(got, "peanuts") {
			t.Errorf("%s found %s", how, got)
		}
	}
}

func TestVersion(t *testing.T) {
	if v := version(); v.Version == "" || v.Go != runtime.Version() || !strings.Contains(v.Platform, "/") {
		t.Errorf("%+v", v)
	}
}
