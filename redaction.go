package loci

import "context"

type redactionKey struct{}

// WithRedaction gives a context whose writes lose what looks like a secret: keys,
// tokens, private keys and card numbers. What was taken out is named in the
// receipt.
func WithRedaction(ctx context.Context) context.Context {
	return context.WithValue(ctx, redactionKey{}, true)
}

// RedactionFrom says whether the context's writes lose secrets.
func RedactionFrom(ctx context.Context) bool {
	on, _ := ctx.Value(redactionKey{}).(bool)
	return on
}
