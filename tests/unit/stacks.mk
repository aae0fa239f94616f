unit_tests += test_stacks_cut test_stacks_frames test_stacks_guard test_stacks_layout test_stacks_lines \
              test_stacks_recall test_stacks_site test_stacks_text test_stacks_unwind

# Loaded by Python programs through ctypes; stands on the product's objects.
python_stack_probe := $(BUILD)/tests/programs/libpython_stack_probe.so
programs += $(python_stack_probe)

$(python_stack_probe): $(BUILD)/tests/programs/python_stack_probe.o $(archive)
	$(say) LINK $@
	$(quiet)$(CC) $(CFLAGS) $(SANITIZE) -shared -Wl,-Bsymbolic $(LDFLAGS) -o $@ $^
