package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/op"
	"github.com/spf13/cobra"
)

// The events of loci hook.
const (
	hookSessionStart = "session-start"
	hookPrompt       = "prompt"
	hookStop         = "stop"
	hookPreCompact   = "pre-compact"
	hookSessionEnd   = "session-end"
)

func hookEvents() []string {
	return []string{hookSessionStart, hookPrompt, hookStop, hookPreCompact, hookSessionEnd}
}

// maxHookInput bounds what a client may say on standard input, in bytes.
const maxHookInput = 16 << 20

// hookFlags are the flags of loci hook.
type hookFlags struct {
	client   string
	strict   bool
	within   time.Duration
	budget   int
	minScore float64
	noRedact bool
}

// hookInput is what clients say on standard input. Each says a part of it.
type hookInput struct {
	Session    string `json:"session_id"`
	Transcript string `json:"transcript_path"`
	Dir        string `json:"cwd"`
	Event      string `json:"hook_event_name"`
	Prompt     string `json:"prompt"`
	Turn       string `json:"turn_id"`
	Time       string `json:"timestamp"`
	Response   string `json:"prompt_response"`        // Gemini
	Last       string `json:"last_assistant_message"` // Codex, Claude Code
}

func (a *App) hookCommand() *cobra.Command {
	var f hookFlags
	cmd := &cobra.Command{
		Use:   "hook EVENT",
		Short: "Answer a client's hook: give what is remembered, keep what was said",
		Long: `Clients run it at an event, with what they have to say as JSON on standard input;
loci setup arranges that. At session-start it gives the context window of the
project and what is remembered of what was last worked on; at prompt what is
remembered of it; at stop, pre-compact and session-end it keeps what was said since,
each message as an episode in the thread of the session.

What it gives is marked, and marked text is never kept. What looks like a secret is
taken out of what it keeps. It never stops a client: what goes wrong is told on
standard error, and the exit code is 0, unless --strict is given.

Events: ` + strings.Join(hookEvents(), ", ") + `.`,
		ValidArgs: hookEvents(),
		// A client may be set up for a newer program.
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		RunE: func(cmd *cobra.Command, args []string) error {
			err := a.hook(cmd, args, &f)
			if err == nil || f.strict {
				return err
			}
			if _, werr := fmt.Fprintf(a.deps.Stderr, "loci hook: %s\n", failureText(a.failure(err))); werr != nil {
				return werr
			}
			return nil
		},
	}
	// A wrong flag has the exit code by which clients refuse what the user typed.
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if slices.Contains(a.deps.Args, "--strict") {
			return usageError{err, cmd.CommandPath()}
		}
		_, werr := fmt.Fprintf(a.deps.Stderr, "loci hook: %s\n", err)
		return werr
	})
	fs := cmd.Flags()
	fs.StringVar(&f.client, "client", "claude", "the `client` that runs it")
	fs.BoolVar(&f.strict, "strict", false, "end with an exit code when something goes wrong")
	fs.DurationVar(&f.within, "within", 5*time.Second, "give up after this long")
	fs.IntVar(&f.budget, "budget", 1200, "about how many `tokens` it may give")
	fs.Float64Var(&f.minScore, "min-score", 0.45, "how like the prompt, as a cosine, a memory must be that shares no word with it")
	fs.BoolVar(&f.noRedact, "no-redact", false, "keep what looks like a secret as it is")
	return cmd
}

// hooking is one event under way.
type hooking struct {
	*App
	flags     *hookFlags
	in        hookInput
	namespace string
	scope     string
	memory    *memory
}

func (a *App) hook(cmd *cobra.Command, args []string, f *hookFlags) (err error) {
	if a.settings.list == nil {
		if err := a.loadSettings(cmd); err != nil {
			return err
		}
	}
	if len(args) != 1 {
		return usageError{errors.New("name an event: " + strings.Join(hookEvents(), ", ")), cmd.CommandPath()}
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), f.within)
	defer cancel()
	h := &hooking{App: a, flags: f}
	if err := h.read(ctx); err != nil {
		return err
	}
	var do func(context.Context) error
	switch args[0] {
	case hookSessionStart:
		do = h.sessionStart
	case hookPrompt:
		do = h.prompt
	case hookStop, hookPreCompact, hookSessionEnd:
		do = h.capture
	default:
		msg := "there is no event " + quote(args[0])
		if near := op.Closest(args[0], hookEvents()); near != "" {
			msg += "; did you mean " + near + "?"
		}
		return usageError{errors.New(msg), cmd.CommandPath()}
	}
	if h.memory, err = a.open(ctx, false); err != nil {
		return err
	}
	defer func() { err = first(errors.Join(err, h.memory.Close())) }()
	if !f.noRedact {
		ctx = loci.WithRedaction(ctx)
	}
	return do(ctx)
}

// read reads what the client says, and finds where it is.
func (h *hooking) read(ctx context.Context) error {
	type result struct {
		raw []byte
		err error
	}
	done := make(chan result, 1)
	go func() { // a client that never closes its end is not waited for
		raw, err := io.ReadAll(io.LimitReader(h.deps.Stdin, maxHookInput+1))
		done <- result{raw, err}
	}()
	var r result
	select {
	case <-ctx.Done():
		return errs.Wrap(errs.Canceled, ctx.Err(), "standard input did not end in time")
	case r = <-done:
	}
	switch {
	case r.err != nil:
		return errs.Wrap(errs.IO, r.err, "standard input")
	case len(r.raw) > maxHookInput:
		return errs.Invalid("", "standard input has more than %d bytes", maxHookInput)
	}
	if strings.TrimSpace(string(r.raw)) != "" {
		if err := json.Unmarshal(r.raw, &h.in); err != nil {
			return errs.Invalid("", "standard input is not what a client says to a hook")
		}
	}
	ns := h.settings.get("namespace")
	h.namespace, h.scope = ns.Value, h.settings.get("scope").Value
	unnamed := ns.Source == sourceDefault || strings.HasPrefix(ns.Source, repositorySource)
	if unnamed && filepath.IsAbs(h.in.Dir) {
		h.namespace = loci.DefaultNamespace
		if p, ok := h.projectOf(h.in.Dir); ok {
			h.namespace = p.Name
		}
	}
	return nil
}

// call runs an operation and decodes its result.
func (h *hooking) call(ctx context.Context, name string, in map[string]any, out any) error {
	o, ok := op.Default().Lookup(name)
	if !ok {
		return op.Default().Unknown(name)
	}
	raw, err := marshal(in)
	if err != nil {
		return err
	}
	res, err := h.memory.run(ctx, h.App, o, raw)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(res, out); err != nil {
		return errs.Wrap(errs.Storage, err, "the answer to %s", name)
	}
	return nil
}

// give answers the client with text for its model.
func (h *hooking) give(event, text string) error {
	if text == "" {
		return nil
	}
	if h.in.Event != "" {
		event = h.in.Event
	}
	raw, err := marshal(map[string]any{"hookSpecificOutput": map[string]string{
		"hookEventName": event, "additionalContext": text,
	}})
	if err != nil {
		return err
	}
	_, err = h.deps.Stdout.Write(append(raw, '\n'))
	return err
}

// tokenCost is about how many tokens a text has: four letters of Latin script to one,
// and one to a character of others.
func tokenCost(text string) int {
	ascii, others := 0, 0
	for _, r := range text {
		if r < 0x80 {
			ascii++
		} else {
			others++
		}
	}
	return (ascii+3)/4 + others
}
