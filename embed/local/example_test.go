package local_test

import (
	"context"
	"fmt"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/local"
	"github.com/loci-memory/loci/models/e5small"
)

// The built-in model puts a question beside its answer, in another language
// too.
func Example() {
	model, err := local.Open(e5small.Data(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	passages := []string{"明天上海有小到中雨。", "The meeting moved to Friday.", "Bread rises faster in a warm kitchen."}
	texts, err := model.Embed(ctx, passages, embed.Passage)
	if err != nil {
		fmt.Println(err)
		return
	}
	question, err := model.Embed(ctx, []string{"Will it rain in Shanghai?"}, embed.Query)
	if err != nil {
		fmt.Println(err)
		return
	}
	best, bestScore := 0, float32(-1)
	for i, text := range texts {
		var score float32
		for j, v := range text {
			score += v * question[0][j]
		}
		if score > bestScore {
			best, bestScore = i, score
		}
	}
	fmt.Println(passages[best])
	// Output: 明天上海有小到中雨。
}
