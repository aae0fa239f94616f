# gpuoomshim: `make help` says what there is to make.
#
# User's flags are kept: CC, CFLAGS, CPPFLAGS and LDFLAGS are added to ours.

BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
CC ?= cc
CFLAGS ?= -O2 -g
WERROR ?= 1
LTO ?= 1
V ?= 0
PYTHON ?= python3

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules

ifeq ($(V),1)
  quiet :=
  say = @:
else
  quiet := @
  say = @printf '  %-8s %s\n'
endif

# ---- flags ------------------------------------------------------------------

# The headers are looked for only when something is going to be compiled.
goals_without_headers := help clean check-layers check-readme format format-check
ifneq ($(filter-out $(goals_without_headers),$(or $(MAKECMDGOALS),all)),)
  ifndef CUDA_INCLUDE
    CUDA_INCLUDE := $(shell PYTHON='$(PYTHON)' scripts/find-cuda-headers.sh $(BUILD)/cuda-headers)
    ifeq ($(CUDA_INCLUDE),)
      $(error no CUDA headers, see above)
    endif
  endif
  export CUDA_INCLUDE
endif
cuda_flags := $(addprefix -isystem ,$(CUDA_INCLUDE))

warnings := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes
ifeq ($(WERROR),1)
  warnings += -Werror
endif
language := -std=c11 -D_GNU_SOURCE $(cuda_flags)
depend = -MMD -MP -MF $(@:.o=.d) -MT $@

# Two small stores that are made one wide one, or the reverse, are what a hook
# would wait for longest.
hot_path := -fno-tree-slp-vectorize

# The library is optimised as a whole where GCC can do that, linking included (images
# may lack its lto-wrapper); its objects hold plain code as well, for tests and other
# linkers.
lto_link := out=$$(mktemp) && echo 'int f(void) { return 0; }' | \
    $(CC) -flto=auto -ffat-lto-objects -fPIC -shared -x c - -o $$out 2>/dev/null; \
    result=$$?; rm -f $$out; test $$result -eq 0
lto_flags := $(if $(filter-out 0,$(LTO)),$(if $(SANITIZE),,$(shell \
    $(CC) -v 2>&1 | grep -q '^gcc version' && { $(lto_link); } && echo -flto=auto -ffat-lto-objects)))

# Every ABI of every name is visible to the product; hosts see what hosts see.
product_flags = $(language) -D__CUDA_API_VERSION_INTERNAL -fPIC -fvisibility=$(visibility) \
                -ftls-model=initial-exec $(warnings) $(CPPFLAGS) $(hot_path) $(CFLAGS) $(lto) $(SANITIZE)
host_flags = $(language) -Iinclude -Itests/programs $(warnings) $(CPPFLAGS) $(CFLAGS) $(SANITIZE)

# Hooks bear CUDA's names, and its headers say nothing of visibility: in the shim
# the version script alone decides what is exported.
visibility := hidden
$(BUILD)/src/shim/%.o: visibility := default
lto :=

# Objects are made anew when the flags are others than last time.
flags_stamp := $(BUILD)/flags
.PHONY: FORCE
$(flags_stamp): FORCE
	@mkdir -p $(@D) && echo '$(CC) $(product_flags)' | cmp -s - $@ || echo '$(CC) $(product_flags)' > $@

machine := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))

# ---- product ----------------------------------------------------------------

layers := base cuda track observe diagnose report recover shim cli
include $(wildcard $(layers:%=src/%/layer.mk))

objects = $(patsubst %.c,$(BUILD)/%.o,$(patsubst %.S,$(BUILD)/%.o,$(1)))
layer_objects = $(foreach layer,$(1),$(call objects,$(addprefix src/$(layer)/,$($(layer)_sources))))

library_layers := base cuda track observe diagnose report recover
library_objects := $(call layer_objects,$(library_layers))
shim_sources += dlsym_$(machine).S torch_word_$(machine).S
shim_objects := $(call layer_objects,shim)
$(library_objects) $(shim_objects): private lto := $(lto_flags)
cli_objects := $(call layer_objects,cli)
cli_ldlibs ?= -ljansson
link_libraries := -lpthread -ldl

shim := $(BUILD)/libgpuoomshim.so
cli := $(BUILD)/gpuoomshim
archive := $(BUILD)/libgos.a
cli_archive := $(BUILD)/libgos-cli.a

.PHONY: all
all: $(shim) $(cli) ## the library and the command, in build/

shim_ldflags := -shared -Wl,-soname,libgpuoomshim.so -Wl,--version-script=$(BUILD)/exports.map \
                -Wl,-z,now -Wl,-z,nodelete -Wl,-z,relro -Wl,-z,noexecstack -Wl,--as-needed \
                -Wl,-Bsymbolic-functions -static-libgcc

$(shim): $(library_objects) $(shim_objects) $(BUILD)/exports.map
	$(say) LINK $@
	$(quiet)$(CC) $(CFLAGS) $(lto_flags) $(SANITIZE) $(shim_ldflags) $(LDFLAGS) -o $@ $(filter %.o,$^)

$(cli): $(cli_objects) $(archive)
	$(say) LINK $@
	$(quiet)$(CC) $(CFLAGS) $(SANITIZE) $(LDFLAGS) -o $@ $^ $(cli_ldlibs) \
	    $(link_libraries)

$(archive): $(library_objects)
$(cli_archive): $(filter-out %/main.o,$(cli_objects))
$(archive) $(cli_archive):
	$(say) AR $@
	$(quiet)rm -f $@ && ar rcs $@ $^

# An anonymous version node: a named one would silently stop interception.
$(BUILD)/exports.map: src/shim/exports.map.in src/cuda/entrypoints.def src/shim/torch_word.def
	$(say) GEN $@
	$(quiet)mkdir -p $(@D) && $(CC) -E -P -x c $(product_flags) $< > $@

$(BUILD)/src/%.o: src/%.c $(flags_stamp)
	$(say) CC $<
	$(quiet)mkdir -p $(@D) && $(CC) $(product_flags) $(depend) -c -o $@ $<

$(BUILD)/src/%.o: src/%.S $(flags_stamp)
	$(say) AS $<
	$(quiet)mkdir -p $(@D) && $(CC) $(CFLAGS) -fPIC $(depend) -c -o $@ $<

# ---- tests ------------------------------------------------------------------

include $(wildcard tests/sim/sim.mk)
include tests/programs/programs.mk tests/programs/broke.mk tests/programs/cudart.mk tests/programs/own.mk tests/differential/differential.mk tests/rows/rows.mk
include tests/bench/bench.mk

# tests/<kind>/*.mk add to <kind>_tests; each name is a source and a binary of
# that name.  <name>_sources, <name>_ldflags and <name>_ldlibs are its extras.
test_kinds := unit fault stress fuzz
include $(wildcard $(test_kinds:%=tests/%/*.mk))
test_binaries = $(addprefix $(BUILD)/tests/$(1)/,$(sort $($(1)_tests)))
all_test_binaries := $(foreach kind,$(test_kinds),$(call test_binaries,$(kind)))

.SECONDEXPANSION:
$(all_test_binaries): $(BUILD)/tests/%: $(BUILD)/tests/%.o \
    $$(call objects,$$($$(notdir $$*)_sources)) $(cli_archive) $(archive)
	$(say) LINK $@
	$(quiet)$(CC) $(CFLAGS) $(SANITIZE) $(LDFLAGS) $($(notdir $@)_ldflags) -o $@ \
	    $(filter %.o,$^) $(filter %.a,$^) -lcmocka $(cli_ldlibs) $($(notdir $@)_ldlibs) \
	    $(link_libraries)

$(BUILD)/tests/%.o: tests/%.c $(flags_stamp)
	$(say) CC $<
	$(quiet)mkdir -p $(@D) && $(CC) $(product_flags) $(depend) -c -o $@ $<

.PHONY: sim programs tests unit stress test bench
sim: ## the simulated GPU: stand-ins for libcuda, libcudart, libnvidia-ml in build/sim
programs: $(programs) ## the small hosts of tests/programs
tests: $(all_test_binaries) ## build all test binaries, run none

# Tests that look at the process' own stack, libraries or memory: there a
# sanitizer stands in the way.
unfit_for_sanitizers := test_base_module test_report_stacks test_stacks_% test_track_budget
# A thread that the thread sanitizer does not see begin; pure functions of one thread.
ifneq ($(filter -fsanitize=thread,$(SANITIZE)),)
  unfit_for_sanitizers += test_observe_helper test_diagnose_%
  # One thread that writes a file of zeros again and again: minutes, for nothing to be seen.
  unfit_faults := fault_draft
endif
unit_now = $(if $(SANITIZE),$(filter-out $(unfit_for_sanitizers:%=$(BUILD)/tests/unit/%),$(1)),$(1))

unit: $(call test_binaries,unit) ## run the unit tests (one: make unit T=test_name)
	$(quiet)scripts/run-tests.sh $(if $(T),$(BUILD)/tests/unit/$(T),$(call unit_now,$^))

stress: $(foreach kind,fault stress fuzz,$(call test_binaries,$(kind))) ## run fault, stress and fuzz
	$(quiet)scripts/run-tests.sh $(filter-out $(unfit_faults:%=$(BUILD)/tests/fault/%),$^)

test: ## everything that needs no GPU
	$(quiet)BUILD='$(BUILD)' scripts/test.sh --no-install

bench: all sim programs $(benches) ## measure what the shim costs, beside the bare driver
	$(quiet)BUILD='$(BUILD)' tests/bench/run.sh

.PHONY: asan tsan inside check-gpu check-aarch64
asan: ## all kinds of tests under the address and undefined-behaviour sanitizers
	$(quiet)$(MAKE) -k BUILD=$(BUILD)-asan CPPFLAGS='-DGOS_DEBUG' \
	    CFLAGS='-O1 -g -fno-omit-frame-pointer' \
	    SANITIZE='-fsanitize=address,undefined -fno-sanitize-recover=undefined' unit stress inside

# An empty libunwind, so that hosts use libgcc's: what libunwind does at a thread's
# end comes after the thread sanitizer has forgotten the thread, and falls over it.
tsan: ## the same under the thread sanitizer
	$(quiet)for folder in sim tests/rows; do \
	    mkdir -p $(BUILD)-tsan/$$folder && : >$(BUILD)-tsan/$$folder/libunwind.so.8; done
	$(quiet)$(MAKE) -k BUILD=$(BUILD)-tsan CPPFLAGS='-DGOS_DEBUG' CFLAGS='-O1 -g' \
	    SANITIZE='-fsanitize=thread' unit stress inside

inside: sim $(inside_hosts) ## hosts that have the library inside, as asan and tsan run them
	$(quiet)BUILD='$(BUILD)' PYTHON='$(PYTHON)' GOS_LOAD_PATHS=inside scripts/run-hosts.sh -k inside \
	    tests/integration/test_scenarios.py tests/integration/test_tracking.py \
	    tests/integration/test_rows.py tests/integration/test_differential.py

check-aarch64: ## build for aarch64 and run the tests in qemu (skipped without the tools)
	$(quiet)BUILD='$(BUILD)-aarch64' PYTHON='$(PYTHON)' scripts/check-aarch64.sh || [ $$? -eq 77 ]

check-gpu: all programs ## the same programs and the frameworks on a real GPU (skipped without one)
	$(quiet)BUILD='$(BUILD)' scripts/check-gpu.sh || [ $$? -eq 77 ]

.PHONY: print-tests
print-tests: # the binaries of KIND, for scripts
	@echo $(call test_binaries,$(KIND))

# ---- checks -----------------------------------------------------------------

.PHONY: check check-readme check-layers check-exports check-glibc228 check-install format format-check lint
check: check-layers check-exports check-install check-readme format-check ## all quick checks

check-layers: ## a layer includes only itself and those below it
	$(quiet)scripts/check-layers.sh $(layers)

check-readme: ## the README's tables are those of the .def files
	$(quiet)$(PYTHON) scripts/readme-tables.py --check

check-exports: $(shim) ## what the library exports, needs and runs when it is loaded
	$(quiet)CC='$(CC)' CPPFLAGS='$(product_flags)' scripts/check-exports.sh $(shim)

check-glibc228: $(library_objects) $(shim_objects) $(BUILD)/exports.map ## link against glibc 2.28 (skipped without zig)
	$(quiet)PYTHON='$(PYTHON)' scripts/check-glibc228.sh $(BUILD)/glibc228 \
	    -Wl,--version-script=$(BUILD)/exports.map $(filter %.o,$^) || [ $$? -eq 77 ]

check-install: all ## install into a scratch folder, then compile and link against it
	$(quiet)CC='$(CC)' scripts/check-install.sh $(BUILD)/install-check

c_files = $(shell find src tests include -name '*.[ch]')
clang_format ?= clang-format-14

format: ## rewrite all C files with clang-format
	$(quiet)$(clang_format) -i $(c_files)

format-check: ## complain about C files that clang-format would change
	$(quiet)command -v $(clang_format) >/dev/null || { echo "format-check: skipped: no $(clang_format)"; exit 0; }; \
	    $(clang_format) --dry-run --Werror $(c_files)

lint: ## clang-tidy with a few checks and no tolerance
	$(quiet)command -v clang-tidy >/dev/null || { echo "lint: skipped: no clang-tidy"; exit 0; }; \
	    find src -name '*.c' | sort | xargs -P 2 -n 4 sh -c 'clang-tidy --quiet \
	        --warnings-as-errors=* "$$@" -- $(language) -D__CUDA_API_VERSION_INTERNAL' lint

# ---- install ----------------------------------------------------------------

.PHONY: install uninstall clean help
install: all ## into $(DESTDIR)$(PREFIX): lib, bin, include, share/gpuoomshim
	$(say) INSTALL $(DESTDIR)$(PREFIX)
	$(quiet)install -d $(addprefix $(DESTDIR)$(PREFIX)/,lib bin include share/gpuoomshim)
	$(quiet)install -m 755 $(shim) $(DESTDIR)$(PREFIX)/lib/
	$(quiet)install -m 755 $(cli) $(DESTDIR)$(PREFIX)/bin/
	$(quiet)install -m 644 include/gpuoomshim.h $(DESTDIR)$(PREFIX)/include/
	$(quiet)install -m 644 src/report/report.schema.json $(DESTDIR)$(PREFIX)/share/gpuoomshim/

uninstall: ## remove what install put there
	$(quiet)rm -f $(DESTDIR)$(PREFIX)/lib/libgpuoomshim.so $(DESTDIR)$(PREFIX)/bin/gpuoomshim \
	    $(DESTDIR)$(PREFIX)/include/gpuoomshim.h
	$(quiet)rm -rf $(DESTDIR)$(PREFIX)/share/gpuoomshim

clean: ## remove what was built
	$(quiet)rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-aarch64

help: ## this list
	@sed -n 's/^\([a-z][a-z-]*\):.* ## \(.*\)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | sort | \
	    while IFS='	' read -r target words; do printf '  make %-14s %s\n' "$$target" "$$words"; done
	@echo 'settings: BUILD=dir V=1 WERROR=0 CC= CFLAGS= LDFLAGS= CUDA_INCLUDE=dir PREFIX= DESTDIR='

-include $(shell find $(BUILD) -path $(BUILD)/pythons -prune -o -name '*.d' -type f -print 2>/dev/null)
