package text

import (
	"fmt"
	"strings"
	"testing"
)

// Texts of the kinds that memories are made of.
var benchTexts = []struct{ name, text string }{
	{"english", strings.Repeat("The harbour master's log says that three ships were waiting outside, and nobody knew when the tide would turn again. ", 40)},
	{"chinese", strings.Repeat("潮水表每周更新一次，港口的灯塔在傍晚七点开始点灯，守夜人换班之前要把航海日志写完。", 40)},
	{"mixed", strings.Repeat("上线前要重跑 gen-itgc 后 50 条，接口 getUserName 在 v1.2.3 里改了。Remember that the API returns max_tokens in the header. ", 40)},
	{"code", strings.Repeat("func (s *Server) handleRequest(w http.ResponseWriter, r *http.Request) error { return s.store.PutAll(r.Context(), max_retry_count) }\n", 40)},
	{"french", strings.Repeat("L'été dernier, les élèves étaient déjà partis à la plage après la leçon. ", 60)},
}

func BenchmarkAnalyze(b *testing.B) {
	for _, t := range benchTexts {
		b.Run(t.name, func(b *testing.B) {
			var a Analyzer
			n := 0
			emit := func([]byte) { n++ }
			b.SetBytes(int64(len(t.text)))
			b.ReportAllocs()
			for b.Loop() {
				a.Analyze(t.text, emit)
			}
		})
	}
}

func BenchmarkAnalyzeQuery(b *testing.B) {
	for _, q := range []string{"When did Caroline go to the support group?", "战国无双3是由哪两个公司合作开发的", "getUserName in max_tokens"} {
		b.Run(q[:8], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				AnalyzeQuery(q)
			}
		})
	}
	var long strings.Builder
	for i := range 15_000 {
		fmt.Fprintf(&long, "word%d ", i)
	}
	b.Run("100KB", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			AnalyzeQuery(long.String())
		}
	})
}

func BenchmarkNormalize(b *testing.B) {
	for _, s := range []string{"harbour master", "Harbour  Master", "港口 ａｐｉ 稳定"} {
		b.Run(s[:7], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Normalize(s)
			}
		})
	}
}
