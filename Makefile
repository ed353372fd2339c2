# Everything a contributor runs. CI runs .ci/run, which calls these targets.

GO          ?= go
STATICCHECK ?= honnef.co/go/tools/cmd/staticcheck@v0.7.0
CYCLONEDX   ?= github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.9.0
GORELEASER  ?= github.com/goreleaser/goreleaser/v2@v2.17.0
FUZZTIME    ?= 3s
BENCHFLAGS  ?= --records 100000
PLATFORMS    = linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

.PHONY: all build packaged sbom snapshot test race purego generated fuzz-short lint fmt vet staticcheck cross bench peers cover demo clean

all: lint test build

## build: the command line program, without cgo
build:
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=auto -o bin/loci ./cmd/loci

## packaged: the manual pages and completions that packages bring along
packaged: build
	rm -rf bin/packaged && mkdir -p bin/packaged/completions
	bin/loci --quiet man bin/packaged/man
	bin/loci completion bash > bin/packaged/completions/loci.bash
	bin/loci completion zsh > bin/packaged/completions/_loci
	bin/loci completion fish > bin/packaged/completions/loci.fish
	bin/loci completion powershell > bin/packaged/completions/loci.ps1

## sbom: what the binary is made of, as bin/loci.cdx.json
sbom:
	$(GO) run $(CYCLONEDX) app -json -licenses -main cmd/loci -output bin/loci.cdx.json .

## snapshot: the archives and packages of a release, in dist, without publishing
snapshot:
	$(GO) run $(GORELEASER) release --snapshot --clean

## test: what CI runs of the tests
test:
	$(GO) test -timeout 15m ./...
	cd bench/peers && $(GO) test -timeout 10m ./...

# Packages that start no goroutines, in their tests neither: the race detector has
# nothing to find there.
PURE = /internal/(text|rank|render|lifecycle|note|redact|mark|secretscan|foreign|clientgen|meta|valid|agentfile|agentpolicy|chatlog)$$

## race: the tests under the race detector, which needs cgo and a C compiler
race:
	CGO_ENABLED=1 $(GO) test -race -short -timeout 20m $$($(GO) list ./... | grep -vE '$(PURE)')

## fuzz-short: every fuzz target for FUZZTIME
fuzz-short:
	GO="$(GO)" FUZZTIME="$(FUZZTIME)" .ci/fuzz

## purego: the tests of the kernels' twins, as processors without them run
purego:
	$(GO) test -tags purego -timeout 10m ./internal/vec ./internal/transformer

## generated: the committed assembly is what its generators write
generated:
	cd internal/vec/gen && $(GO) test ./...
	cd internal/transformer/gen && $(GO) test ./...

## lint: formatting, vet, staticcheck
lint: fmt vet staticcheck

fmt:
	@out=$$(git ls-files '*.go' | xargs gofmt -l -s); if [ -n "$$out" ]; then echo "gofmt -s is needed for:"; echo "$$out"; exit 1; fi

vet:
	$(GO) vet ./...
	cd bench/peers && $(GO) vet ./...

staticcheck:
	$(GO) run $(STATICCHECK) ./...
	cd bench/peers && $(GO) run $(STATICCHECK) ./...

## cross: everything compiles for every platform, without cgo
cross:
	@set -e; for p in $(PLATFORMS); do echo "build $$p"; CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build ./...; done

## bench: the benchmark; pass flags in BENCHFLAGS
bench: build
	bin/loci bench $(BENCHFLAGS)

## peers: the comparison with other products; pass flags in PEERSFLAGS
peers:
	cd bench/peers && $(GO) run . run $(PEERSFLAGS)

## cover: test coverage by package, and coverage.out for go tool cover
cover:
	$(GO) test -timeout 15m -coverpkg=./... -coverprofile=coverage.out ./...
	$(GO) tool cover -func=coverage.out | tail -1

## demo: load the demonstration corpus and ask it questions
demo:
	$(GO) run ./cmd/loci demo

clean:
	rm -rf bin dist coverage.out
