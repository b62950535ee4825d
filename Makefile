# Two commands matter: `make demo` shows fairway on a forwarding layer of this machine's own, `make test` proves it.
GO      ?= go
BIN     := bin
PROGS   := fairway fairwayd fairway-agent fairway-mount
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS := -s -w -X main.version=$(VERSION)

.PHONY: demo test build lint vet race fuzz clean

# The agent, the mount and the operator's command are static; only fairwayd may link C.
build:
	@mkdir -p $(BIN)
	@for p in $(PROGS); do [ ! -d cmd/$$p ] || CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/$$p ./cmd/$$p || exit 1; done

# SIM=1 shows a simulated machine of TaihuLight's size; DEMO_FLAGS are further ones of 'fairwayd demo'.
demo:
	@.ci/deps demo
	@$(MAKE) --no-print-directory build
	@$(BIN)/fairwayd demo $(if $(SIM),--sim) $(DEMO_FLAGS)

lint:
	@bad=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$bad" ] || { echo "gofmt wants: $$bad"; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

test:
	@.ci/deps test
	@$(MAKE) --no-print-directory lint build
	$(GO) test -race -timeout 15m ./...

# A minute of fuzzing for every fuzz target; FUZZTIME=10m for the long run.
FUZZTIME ?= 60s
fuzz:
	@$(GO) list ./... | while read p; do \
	  $(GO) test -list '^Fuzz' $$p | grep '^Fuzz' | while read f; do \
	    echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$p || exit 1; \
	  done || exit 1; done

clean:
	rm -rf $(BIN)
