# Benchmarks: timed loops that bench.py calls, and what they call.
bench_dir := $(BUILD)/tests/bench
benches := $(bench_dir)/libbench.so $(bench_dir)/libc10_cuda.so

bench_compile = $(CC) $(host_flags) -MMD -MP -MF $@.d -MT $@ -O2 -fPIC -shared -o $@ $(filter %.c,$^) \
                $(LDFLAGS) -ldl -lpthread

$(bench_dir)/libbench.so: tests/bench/bench_driver.c tests/bench/bench.c
	$(say) HOST $@
	$(quiet)mkdir -p $(@D) && $(bench_compile)

$(bench_dir)/libc10_cuda.so: tests/bench/bench_retrier.c
	$(say) HOST $@
	$(quiet)mkdir -p $(@D) && $(bench_compile)
