# The per-row test: stand-ins for libcuda and libcudart that log, and a host for
# each way to reach them.  integration/test_rows.py runs and reads them.
rows_dir := $(BUILD)/tests/rows
rows_hosts := $(load_paths:%=$(rows_dir)/rows.%)
# The table of signatures needs a C++ compiler; without one these tests are skipped.
programs += $(if $(shell command -v $(CXX)),$(rows_hosts) $(rows_dir)/stories)
inside_hosts += $(if $(shell command -v $(CXX)),$(rows_dir)/rows.inside $(rows_dir)/stories.inside)

# What stands for the driver is no more under a sanitizer than a driver is.
$(rows_dir)/row_driver.o $(rows_dir)/row_runtime.o: override SANITIZE :=

# Every ABI of every name, as in the product.
rows_flags = $(host_flags) -D__CUDA_API_VERSION_INTERNAL -Wno-deprecated-declarations -fPIC $(depend)

$(rows_dir)/signatures.o: tests/rows/signatures.cc
	$(say) HOST $<
	$(quiet)mkdir -p $(@D) && $(CXX) -std=c++17 -fno-exceptions -fno-rtti -fPIC $(cuda_flags) \
	    -D__CUDA_API_VERSION_INTERNAL -Wall -Wextra -Wno-deprecated-declarations $(depend) -c -o $@ $<

$(rows_dir)/%.o: tests/rows/%.c
	$(say) HOST $<
	$(quiet)mkdir -p $(@D) && $(CC) $(rows_flags) -c -o $@ $<

$(rows_dir)/libcuda.so.1: $(rows_dir)/row_driver.o
	$(say) LINK $@
	$(quiet)$(CC) $(CFLAGS) -shared -Wl,-soname,$(@F) -Wl,-Bsymbolic -o $@ $< $(LDFLAGS)

$(rows_dir)/libcudart.so.13: $(rows_dir)/row_runtime.o
	$(say) LINK $@
	$(quiet)$(CC) $(CFLAGS) -shared -Wl,-soname,$(@F) -o $@ $^ $(LDFLAGS)

$(rows_dir)/row_reach.%.o: tests/rows/row_reach.c
	$(say) HOST $@
	$(quiet)mkdir -p $(@D) && $(CC) $(rows_flags) $(load_flag_$*) -c -o $@ $<

rows_link = $(CC) $(CFLAGS) -o $@ $(filter %.o,$^) $(LDFLAGS) $(filter %.so.1 %.so.13,$^) -ldl -lpthread

$(rows_dir)/rows.linked: $(rows_dir)/libcuda.so.1 $(rows_dir)/libcudart.so.13
$(rows_hosts): $(rows_dir)/rows.%: $(rows_dir)/row_host.o $(rows_dir)/row_reach.%.o \
    $(rows_dir)/row_plans.o $(rows_dir)/signatures.o | $(rows_dir)/libcuda.so.1 $(rows_dir)/libcudart.so.13
	$(say) LINK $@
	$(quiet)$(rows_link)

$(rows_dir)/stories: $(rows_dir)/stories.o $(rows_dir)/libcuda.so.1
	$(say) LINK $@
	$(quiet)$(rows_link)

# With the library inside, for sanitizers (programs.mk).
rows_inside = $(CC) $(CFLAGS) $(SANITIZE) -rdynamic -o $@ $(filter %.o,$^) $(archive) $(LDFLAGS) \
              $(filter %.so.1 %.so.13,$^) -ldl -lpthread

$(rows_dir)/rows.inside: $(rows_dir)/row_host.o $(rows_dir)/row_reach.linked.o \
    $(rows_dir)/row_plans.o $(rows_dir)/signatures.o $(rows_dir)/libcuda.so.1 $(rows_dir)/libcudart.so.13
$(rows_dir)/stories.inside: $(rows_dir)/stories.o $(rows_dir)/libcuda.so.1
$(rows_dir)/rows.inside $(rows_dir)/stories.inside: $(inside_objects) $(archive)
	$(say) LINK $@
	$(quiet)$(rows_inside)
