package static_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/static"
	"github.com/loci-memory/loci/internal/modelfile"
	table "github.com/loci-memory/loci/models/static"
)

var (
	_ embed.Embedder = (*static.Embedder)(nil)
	_ embed.Limiter  = (*static.Embedder)(nil)
)

func builtin(t testing.TB) *static.Embedder {
	t.Helper()
	e, err := static.Open(table.Data())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func vectors(t interface{ Fatal(...any) }, e *static.Embedder, texts ...string) [][]float32 {
	v, err := e.Embed(context.Background(), texts, embed.Query)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func dot(a, b []float32) float64 {
	var sum float64
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// What belongs together is nearer than what does not, in each language and
// across the two.
func TestNearness(t *testing.T) {
	e := builtin(t)
	for _, c := range []struct{ text, near, far string }{
		{"how do I reset my password", "Passwords can be changed in the account settings.", "The train leaves at noon."},
		{"a man is playing the guitar", "someone plays a musical instrument", "stock prices fell on Monday"},
		{"怎样重置密码", "在账户设置里可以修改密码。", "火车中午出发。"},
		{"他在北京的一家医院工作", "医生住在北京", "股票价格周一下跌"},
		{"where is the hospital", "医院在哪里", "股票价格周一下跌"},
		{"天气预报说明天下雨", "the weather will be rainy tomorrow", "he plays the guitar"},
	} {
		v := vectors(t, e, c.text, c.near, c.far)
		if near, far := dot(v[0], v[1]), dot(v[0], v[2]); near < far+0.1 {
			t.Errorf("%q: %.3f to %q and %.3f to %q", c.text, near, c.near, far, c.far)
		}
	}
}

// A vector depends on its text alone: not on the batch, the purpose, the order
// of words, or spaces and width.
func TestDeterministic(t *testing.T) {
	e := builtin(t)
	texts := []string{"the cat sat", "知识图谱", "mixed 文本 123", "sat the cat", "the  cat\nｓａｔ "}
	all := vectors(t, e, texts...)
	for i, text := range texts {
		v, err := e.Embed(context.Background(), []string{text}, embed.Passage)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(v[0], all[i]) {
			t.Errorf("%q: another vector alone", text)
		}
		if length := dot(v[0], v[0]); math.Abs(length-1) > 1e-5 || len(v[0]) != e.Dimension() {
			t.Errorf("%q: %d values, square %v", text, len(v[0]), length)
		}
	}
	if d := dot(all[0], all[3]); d < 0.9999 {
		t.Errorf("the order of words counts: %v", d)
	}
	if !slices.Equal(all[0], all[4]) {
		t.Error("spaces or width count")
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				for i, v := range vectors(t, e, texts...) {
					if !slices.Equal(v, all[i]) {
						t.Errorf("%q: another vector at the same time as others", texts[i])
					}
				}
			}
		})
	}
	wg.Wait()
}

func TestRefused(t *testing.T) {
	e := builtin(t)
	for _, text := range []string{"", " \n\t", "\x00\x01", "Россия", "שלום", "\U0001FA70\U0001FAE0"} {
		_, err := e.Embed(context.Background(), []string{"fine", text}, embed.Passage)
		if !errors.Is(err, embed.ErrRefused) || !strings.Contains(err.Error(), "text 1") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if v, err := e.Embed(context.Background(), nil, embed.Query); err != nil || len(v) != 0 {
		t.Error(v, err)
	}
}

func TestContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := builtin(t).Embed(ctx, []string{"text"}, embed.Query); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestLongText(t *testing.T) {
	e := builtin(t)
	text := strings.Repeat("a long text about 知识 and memory, ", 20000)
	if kept, cut := e.Limit(text, embed.Passage); kept != text || cut {
		t.Error("a long text is cut")
	}
	v := vectors(t, e, text, "a long text about 知识 and memory,")
	if d := dot(v[0], v[1]); d < 0.999 {
		t.Errorf("a text said often: %v", d)
	}
}

func TestAnyText(t *testing.T) {
	e := builtin(t)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		v, err := e.Embed(context.Background(), []string{text}, embed.Query)
		if errors.Is(err, embed.ErrRefused) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if d := dot(v[0], v[0]); math.Abs(d-1) > 1e-5 {
			t.Fatalf("%q: a vector of square %v", text, d)
		}
	})
}

func TestOpenRefuses(t *testing.T) {
	f, err := modelfile.Open(table.Data())
	if err != nil {
		t.Fatal(err)
	}
	damaged := []byte(table.Data())
	damaged[len(damaged)/2] ^= 1
	for name, data := range map[string]string{
		"nothing": "", "a damaged row": string(damaged), "half of it": table.Data()[:len(damaged)/2],
	} {
		if _, err := static.Open(data); !errors.Is(err, static.ErrModel) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i, missing := range f.Sections() {
		var b bytes.Buffer
		sections := slices.Delete(f.Sections(), i, i+1)
		if err := modelfile.Write(&b, sections); err != nil {
			t.Fatal(err)
		}
		if _, err := static.Open(b.String()); !errors.Is(err, static.ErrModel) {
			t.Errorf("without %s: %v", missing.Name, err)
		}
		cut := f.Sections()
		cut[i].Data = cut[i].Data[:len(cut[i].Data)-4]
		b.Reset()
		if err := modelfile.Write(&b, cut); err != nil {
			t.Fatal(err)
		}
		if _, err := static.Open(b.String()); !errors.Is(err, static.ErrModel) {
			t.Errorf("with %s cut: %v", missing.Name, err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	for b.Loop() {
		builtin(b)
	}
}

func BenchmarkEmbed(b *testing.B) {
	e := builtin(b)
	for name, text := range map[string]string{
		"English": "Caroline went to the museum with her sister on Saturday and they talked about painting for hours.",
		"Chinese": "我昨天在上海见了王小明，他说下个月要搬到北京去，还问我要不要一起去。",
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				vectors(b, e, text)
			}
		})
	}
}
