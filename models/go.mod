module github.com/loci-memory/loci/models

go 1.26.0
