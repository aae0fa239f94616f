# Benchmarks: programs that time the hooked and the bare function side by side.
benches := $(BUILD)/tests/bench/bench $(BUILD)/tests/bench/null/libcuda.so.1

$(BUILD)/tests/bench/bench: tests/bench/bench.c
	$(say) HOST $@
	$(quiet)mkdir -p $(@D) && $(CC) $(host_flags) -MMD -MP -MF $@.d -MT $@ -O2 -o $@ $< \
	    $(LDFLAGS) -ldl -lpthread

$(BUILD)/tests/bench/null/libcuda.so.1: tests/bench/null_driver.c
	$(say) HOST $@
	$(quiet)mkdir -p $(@D) && $(CC) $(host_flags) -MMD -MP -MF $@.d -MT $@ -O2 -shared -fPIC \
	    -Wl,-soname,libcuda.so.1 -Wl,-Bsymbolic -o $@ $< $(LDFLAGS)
