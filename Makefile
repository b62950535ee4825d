# Two commands matter: `make demo` shows fairway on a forwarding layer of this machine's own, `make test` proves it.
GO      ?= go
BIN     := bin
PROGS   := fairway fairwayd fairway-agent fairway-mount fairway-queue
# The demo is built beside the programs that it starts, and not installed.
DEMO    := fairway-demo
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS := -s -w -X main.version=$(VERSION)

.PHONY: outdated demo test quick build man install packages lint fuzz clean bench-detect attack soak results prove engines

# Static programs, so that one build runs on every Linux. Only fairwayd links C, the archive's DuckDB, where there is a C++
# compiler; glibc and libstdc++ as archives make it static (Debian's g++ has them; elsewhere glibc-static, libstdc++-static),
# else it is built against this system's. Newer linkers need not warn of functions of DuckDB's that nothing calls.
STATIC = $(shell for f in '-static -Wl,--no-warnings' -static; do \
  echo 'int main(){}' | c++ -x c++ $$f -o /dev/null - 2>/dev/null && echo "$$f" && break; done)
build:
	@mkdir -p $(BIN)
	@CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/ $(patsubst %,./cmd/%,$(filter-out fairwayd,$(PROGS)) $(DEMO))
	@command -v c++ >/dev/null || echo "no C++ compiler (Debian: g++): fairwayd is built without the archive of I/O logs"
	@CGO_ENABLED=$$(if command -v c++ >/dev/null; then echo 1; else echo 0; fi) \
	  $(GO) build -trimpath -tags netgo,osusergo -ldflags '$(LDFLAGS) -extldflags "$(STATIC)"' -o $(BIN)/ ./cmd/fairwayd

# SIM=1 shows a simulated machine of TaihuLight's size, LAYER=nfs nfs-ganesha gateways in front of back ends instead of
# diod forwarders; DEMO_FLAGS are further ones of fairway-demo.
demo:
	@.ci/deps demo
	@echo "building; the first time takes some minutes"
	@$(MAKE) --no-print-directory build
	@$(BIN)/fairway-demo $(if $(SIM),--sim) $(if $(LAYER),--layer $(LAYER)) $(DEMO_FLAGS)

# What the papers behind the policies report, measured on this machine's own forwarding layer, into docs/results.md
# (as root). RESULTS names the parts, such as "dfra themisio"; without it all of them, within 45 minutes.
results:
	@.ci/deps test
	@$(MAKE) --no-print-directory build
	@$(BIN)/fairway-demo results --page docs/results.md $(RESULTS)

# What builds every package needs DuckDB's compiler.
.PHONY: compiler
compiler:
	@command -v c++ >/dev/null || { echo "no C++ compiler for the archive of I/O logs: install one (Debian: apt-get install g++); \
	  make build and make demo do without"; exit 1; }

lint: export GOFLAGS := $(GOFLAGS) -trimpath
lint: compiler
	@bad=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$bad" ] || { echo "gofmt wants: $$bad"; exit 1; }
	@nice $(GO) vet ./...
	@nice $(GO) tool staticcheck ./...
	@dead=$$(GOGC=400 nice $(GO) tool deadcode -test ./...); [ -z "$$dead" ] || { echo "nothing calls:"; echo "$$dead"; exit 1; }
	@echo "lint: $$(git ls-files '*.go' | wc -l) files of Go in $$($(GO) list ./... | wc -l) packages"
	@if command -v codespell >/dev/null; then codespell -q 3 -L tread,inflight,varn --ignore-regex '\b[A-Za-z]+[a-z][A-Z]\w*' \
	  $$(git ls-files '*.go' '*.js' '*.md' ':!*_test.go' ':!*/testdata/*' ':!webui/static/uplot'); \
	  else echo "not installed: codespell; spelling is not checked"; fi

# What runs without the race detector, under which it takes several times as long: what starts the programs as shipped and
# asks them from outside, the pages in a browser (the server's races are webui's tests'), the console's screens, the scores
# of detectors and of simulated sites, judges, policies, files. Some start goroutines in the test's process all the same
# (testbed, fairway-demo, sitefiles, simmachine, console, source/nfs): races among these are not looked for. In both lists
# the packages that take longest begin first, so that none is left running alone at the end; results come in their order.
PLAIN   := ./webui/browsertest ./cmd/endtoend ./cmd/lab/attack ./cmd/installtest ./cmd/fairwayd/daemontest ./cmd/lab/knfs \
  ./anomaly/scenariotest ./cmd/fairway-demo ./cmd/lab/testbed ./cmd/lab/sitefiles ./console ./cmd/lab/sitefiles/gateways \
  ./remap/effect ./cmd/lab/simmachine ./cmd/lab/replay ./webui/incident ./cmd ./webui/report ./tsdb/history/logread \
  $(addprefix ./anomaly,/recorded / /backend /capacity /clientslow /failslow /interference /compare /layout /rootcause /survey \
  /targetslow) $(addprefix ./remap,/ /advise /backtest /place /queue/aggregate /window) $(addprefix ./remap/policy/,avoid \
  cycles dfra mckp sharedfiles strictjson) $(addprefix ./tsdb,/ /engine/column /engine/log /engine/tier /history/iolog /migrate) \
  $(addprefix ./collector/,escape rootfs ingest/lineproto logs/lmt source/nfs) ./cmd/lab/sitefiles/model ./cmd/fairwayd/host
LONGEST := ./tsdb/prometheus ./webui ./remap/mount ./tsdb/engine ./remap/queue ./cmd/fairway/site ./cmd/fairway

# Everything, each test once: what is skipped, and why, is printed at the end. Lint runs meanwhile, in the time in which
# tests wait for programs that they have started.
test:
	@.ci/deps test
	@$(MAKE) --no-print-directory -j2 suite lint

# Four packages run at once on two processors, and four tests of one that says so: most of those wait. What is compiled
# is the same in every copy of the tree, and the programs that tests start are those of build: built once, as shipped.
.PHONY: suite
suite: export GOFLAGS := $(GOFLAGS) -trimpath
suite: build
	@FAIRWAY_BIN=$(abspath $(BIN)) .ci/suite plain -p 2 -parallel 4 -timeout 30m $(PLAIN) and \
	  races -race -p 2 -parallel 4 -timeout 30m $(LONGEST) $$($(GO) list ./... | grep -vxF "$$($(GO) list $(PLAIN))")

# Under a minute: no browser, no testbed, no mounts. .ci/slow names what is left out.
quick: compiler
	$(GO) build ./...
	$(GO) vet ./...
	@$(GO) test -short $$($(GO) list ./... | grep -vxFf .ci/slow)

# Direct dependencies of which there is a newer version.
outdated:
	@$(GO) list -m -f '{{if not (or .Indirect .Main)}}{{.Path}}{{end}}' all | xargs $(GO) list -m -u | grep '\[' || true

# What hostile nodes, users and visitors get from a real daemon beside a simulated machine of full size, as a table, and
# what a state directory damaged at random a thousand times costs (docs/security.md). Minutes.
attack:
	FAIRWAY_ATTACK=full $(GO) test -count=1 -timeout 90m -v ./cmd/lab/attack

# What takes longer than make test, as .ci/skips lists it: incidents of the demo to their end, faults that a rule moves
# running jobs away from and look-alikes (EVACUATIONS each), each fault of real kernel-NFS gateways, sites of each layer,
# what needs a quiet machine to be measured, the pictures of the guide. PROVE chooses by a pattern.
EVACUATIONS ?= 5
PROVE ?= $(shell sed -n 's/^\(Test[^ ]*\) .*make prove:.*/\1/p' .ci/skips | paste -sd'|')
prove:
	@.ci/deps test
	FAIRWAY_LONG=1 FAIRWAY_EVACUATIONS=$(EVACUATIONS) $(GO) test -count=1 -p 1 -timeout 4h -v -run '^($(PROVE))$$' \
	  ./anomaly/scenariotest ./cmd/endtoend ./cmd/fairwayd/daemontest ./cmd/installtest ./cmd/lab/knfs ./cmd/lab/papers \
	  ./cmd/lab/sitefiles/... ./cmd/lab/simmachine ./remap/effect ./tsdb/engine ./webui/browsertest

# The distributed engine that docs/store.md names, built from its module in five minutes of a processor: what every store
# must do, and receivers killed. What is older than all that a receiver has is not shown before its next block.
engines:
	@.ci/deps engines
	FAIRWAY_THANOS=$$(command -v thanos || echo $${XDG_CACHE_HOME:-$$HOME/.cache}/fairway/bin/thanos) \
	  $(GO) test -count=1 -timeout 1h -v -run Thanos -skip /samples_an_hour_late_are_taken ./tsdb/prometheus
	FAIRWAY_GOFAKES3=$${XDG_CACHE_HOME:-$$HOME/.cache}/fairway/bin/gofakes3 \
	  $(GO) test -count=1 -v -run TestArchiveOnAnObjectStore ./tsdb/history/archive

# How well slow forwarders are found (go doc ./anomaly/scenariotest).
bench-detect:
	$(GO) test -count=1 -v -run 'ScoreOf(Public|Sizes|ASmallSite|Loops|Links)|SteadyLoops' ./anomaly/scenariotest
	FAIRWAY_TRACES=$(abspath $(or $(TRACES),$(BIN)/traces)) $(GO) test -count=1 -v -run 'ScoreOfClosedTraces' ./anomaly/scenariotest
	FAIRWAY_NODES=80 FAIRWAY_SEEDS=4 $(GO) test -count=1 -v -run 'ScoreOfLoops' ./anomaly/scenariotest

# The modelled sites of routers and of gateways, large, and the simulated machine, over many seeds (FAIRWAY_SEEDS): an hour
# at most.
soak:
	FAIRWAY_SOAK=1 GOGC=400 $(GO) test -count=1 -p 1 -v -timeout 1h -run Soak ./cmd/lab/sitefiles/... \
	  ./cmd/lab/simmachine

# Man pages, from the programs' own commands.
man:
	@rm -rf $(BIN)/man && mkdir -p $(BIN)/man
	@FAIRWAY_MAN=$(abspath $(BIN))/man $(GO) test -count=1 -run '^TestManual$$' $(addprefix ./cmd/,$(PROGS)) >/dev/null && ls $(BIN)/man | wc -l | xargs printf '%s pages in $(BIN)/man\n'

# Programs, units, man pages, shell completion and the agent's settings below DESTDIR and PREFIX.
PREFIX ?= /usr/local
UNITS  := fairwayd.service fairway-agent.service fairway-mount@.service fairway-queue.service
install: build man
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/man/man8
	install -m 755 $(addprefix $(BIN)/,$(PROGS)) $(DESTDIR)$(PREFIX)/bin
	install -m 644 $(BIN)/man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 644 $(BIN)/man/*.8 $(DESTDIR)$(PREFIX)/share/man/man8
	gzip -9nf $(DESTDIR)$(PREFIX)/share/man/man1/fairway*.1 $(DESTDIR)$(PREFIX)/share/man/man8/fairway*.8
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	for p in $(PROGS); do \
	  $(BIN)/$$p completion bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/$$p; \
	  $(BIN)/$$p completion zsh >$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_$$p; \
	  $(BIN)/$$p completion fish >$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/$$p.fish; done
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system $(DESTDIR)$(PREFIX)/lib/sysusers.d $(DESTDIR)$(PREFIX)/lib/tmpfiles.d $(DESTDIR)$(PREFIX)/share/doc/fairway-agent
	for u in $(UNITS); do sed 's|=/usr/bin/|=$(PREFIX)/bin/|' packaging/$$u >$(DESTDIR)$(PREFIX)/lib/systemd/system/$$u; done
	install -m 644 packaging/fairwayd.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/fairwayd.conf
	for p in fairwayd fairway-agent; do install -m 644 packaging/$$p.tmpfiles $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/$$p.conf; done
	env -i $(BIN)/fairway-agent config -c /dev/null | sed 's/^node = .*/node = ""/' >$(DESTDIR)$(PREFIX)/share/doc/fairway-agent/fairway-agent.toml

# Three packages in two kinds below OUT: fairway (the command), fairwayd (the daemon), fairway-agent (for the nodes).
# packaging/Containerfile makes an image of the daemon's.
OUT     ?= $(BIN)/packages
NFPM    := $(shell command -v nfpm || echo $${XDG_CACHE_HOME:-$$HOME/.cache}/fairway/bin/nfpm)
# 0.1.0+90.gabcdef is later than 0.1.0 for dpkg and for rpm. Without a tag: the newest release of the changelog, plus the number of commits.
PACKAGE_VERSION ?= $(or $(shell git describe --tags --match 'v[0-9]*' 2>/dev/null | sed 's/^v//; s/-/+/; s/-/./g'),$(shell sed -n 's/^## v//p' CHANGELOG.md | head -n 1)+$(or $(shell git rev-list --count HEAD 2>/dev/null),0))
# Who makes a package answers for it.
MAINTAINER ?= $(or $(shell git config user.name),fairway) <$(or $(shell git config user.email),fairway@$(or $(shell hostname -f),example.org))>
packages:
	@.ci/deps packages
	rm -rf $(OUT)/root && mkdir -p $(OUT) && rm -f $(OUT)/*.deb $(OUT)/*.rpm
	@$(MAKE) --no-print-directory install DESTDIR=$(OUT)/root PREFIX=/usr
	@! ldd $(OUT)/root/usr/bin/fairwayd >/dev/null 2>&1 || { echo "fairwayd is linked with this system's C library: a package of it \
	  would fail where that is older; install glibc and libstdc++ as archives (glibc-static, libstdc++-static)"; exit 1; }
	@printf '%s\n' '- semver: "$(PACKAGE_VERSION)"' "  date: $$(date -u -d "@$$(git log -1 --format=%ct 2>/dev/null || date +%s)" +%FT%TZ)" \
	  '  packager: "$(MAINTAINER)"' '  deb: {urgency: medium, distributions: [unstable]}' \
	  '  changes: [{note: "See CHANGELOG.md of the package fairway."}]' >$(OUT)/root/changelog.yaml
	for p in fairway fairwayd fairway-agent; do for kind in deb rpm; do \
	  packaging/recipe $$kind $$p $(OUT)/root >$(OUT)/root/$$p.yaml && \
	  STAGE=$(OUT)/root ARCH=$$($(GO) env GOARCH) VERSION=$(PACKAGE_VERSION) MAINTAINER='$(MAINTAINER)' $(NFPM) package -f $(OUT)/root/$$p.yaml -p $$kind -t $(OUT)/ || exit 1; done; done
	rm -r $(OUT)/root
	@if command -v lintian >/dev/null; then mkdir $(OUT)/root; TMPDIR=$(abspath $(OUT))/root lintian --allow-root --fail-on error $(OUT)/*.deb || exit 1; \
	  rm -r $(OUT)/root; else echo "not installed: lintian; the packages are not checked by it"; fi
	@if command -v rpmlint >/dev/null; then rpmlint -c packaging/rpmlint.toml $(OUT)/*.rpm; else echo "not installed: rpmlint; the packages are not checked by it"; fi
	cp packaging/Containerfile $(OUT)

# A minute of fuzzing for every fuzz target; FUZZTIME=10m for the long run.
FUZZTIME ?= 60s
fuzz:
	@$(GO) list ./... | while read p; do \
	  $(GO) test -list '^Fuzz' $$p | grep '^Fuzz' | while read f; do \
	    echo "$$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$p || exit 1; \
	  done || exit 1; done

clean:
	rm -rf $(BIN)
