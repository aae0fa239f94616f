# Benchmarks: programs that time the hooked and the bare function side by side.
benches := $(BUILD)/tests/bench/bench

$(BUILD)/tests/bench/bench: tests/bench/bench.c
	$(say) HOST $@
	$(quiet)mkdir -p $(@D) && $(CC) $(host_flags) -MMD -MP -MF $@.d -MT $@ -O2 -o $@ $< \
	    $(LDFLAGS) -ldl -lpthread
