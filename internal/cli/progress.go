package cli

import (
	"fmt"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// Progress shows on standard error how far long work is: a bar on a terminal,
// a line every few seconds elsewhere, nothing with --quiet.
type Progress struct {
	mu    sync.Mutex
	app   *App
	label string
	start time.Time
	last  time.Time
	bar   *progressbar.ProgressBar
	total int64
}

// lineEvery is how often a line is written where there is no bar.
const lineEvery = 2 * time.Second

// Progress begins to show progress under a label.
func (a *App) Progress(label string) *Progress {
	now := time.Now()
	return &Progress{app: a, label: label, start: now, last: now}
}

// Update says that done of total pieces of work are done. It is an
// op.ProgressFunc.
func (p *Progress) Update(done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.app.Quiet() {
		return
	}
	if width := terminalWidth(p.app.deps.Stderr); width == 0 || p.app.JSON() {
		p.line(done, total)
		return
	}
	if p.bar == nil || p.total != total {
		// The bar counts time from here on, so what was done before would make
		// its first rate absurd: it is drawn from the next update.
		p.total = total
		p.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(p.app.deps.Stderr),
			progressbar.OptionSetDescription(p.label),
			progressbar.OptionShowCount(),
			progressbar.OptionShowIts(),
			progressbar.OptionSetPredictTime(true),
			progressbar.OptionThrottle(65*time.Millisecond),
			progressbar.OptionSetWidth(24),
			progressbar.OptionClearOnFinish(),
		)
		return
	}
	// A bar that cannot be drawn is no reason to stop the work.
	_ = p.bar.Set64(done)
}

// line writes the state as text, not too often; the end is always told.
func (p *Progress) line(done, total int64) {
	now := time.Now()
	if now.Sub(p.last) < lineEvery && done < total {
		return
	}
	p.last = now
	elapsed := now.Sub(p.start).Seconds()
	if p.app.JSON() {
		// The work goes on whether or not somebody reads this.
		_ = p.app.writeJSON(p.app.deps.Stderr, map[string]any{"progress": map[string]int64{"done": done, "total": total}})
		return
	}
	text := fmt.Sprintf("%s: %d of %d", p.label, done, total)
	if total > 0 {
		text += fmt.Sprintf(" (%d%%)", done*100/total)
	}
	if elapsed > 0 && done > 0 {
		rate := float64(done) / elapsed
		text += fmt.Sprintf(", %.0f/s", rate)
		if left := float64(total-done) / rate; done < total {
			text += ", " + (time.Duration(left * float64(time.Second))).Round(time.Second).String() + " left"
		}
	}
	fmt.Fprintln(p.app.deps.Stderr, text)
}

// Close takes the bar away.
func (p *Progress) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Finish() // only drawing can fail
		p.bar = nil
	}
}
