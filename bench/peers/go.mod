// The comparison with other products. A module of its own: nothing of it, and
// nothing that it needs, is part of the product.
module github.com/loci-memory/loci/bench/peers

go 1.26

require github.com/loci-memory/loci v0.0.0

require github.com/loci-memory/loci/models v0.0.0 // indirect

replace github.com/loci-memory/loci => ../..

replace github.com/loci-memory/loci/models => ../../models
