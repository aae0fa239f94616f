# One host for each way to reach the driver, and one that also links cudart.
differential_sources := diff_books.c diff_context.c diff_graph.c diff_limit.c diff_log.c diff_memory.c \
                        diff_pool.c diff_stream.c diff_vmm.c differential.c
differential_dir := $(BUILD)/tests/differential
differential_objects := $(differential_sources:%.c=$(differential_dir)/%.o)
differential_hosts := $(load_paths:%=$(differential_dir)/differential.%) \
                      $(differential_dir)/differential.runtime
programs += $(differential_hosts)

$(differential_dir)/%.o: tests/differential/%.c
	$(say) HOST $<
	$(quiet)mkdir -p $(@D) && $(CC) $(host_flags) -O1 $(depend) -c -o $@ $<

differential_link = $(CC) $(CFLAGS) $(SANITIZE) -o $@ $(filter %.o,$^) $(LDFLAGS)

$(differential_dir)/differential.%: $(differential_objects) $(differential_dir)/diff_load_%.o \
    $(differential_dir)/diff_no_runtime.o | $(link_deps_linked)
	$(say) LINK $@
	$(quiet)$(differential_link) $(link_flags_$*) -ldl -lpthread

$(differential_dir)/differential.runtime: $(differential_objects) \
    $(differential_dir)/diff_load_resolver.o $(differential_dir)/diff_runtime.o \
    | $(cudart_link_dir)/libcudart.so.13
	$(say) LINK $@
	$(quiet)$(differential_link) -L$(cudart_link_dir) -l:libcudart.so.13 \
	    -Wl,--allow-shlib-undefined -ldl -lpthread

# With the library inside, for sanitizers (programs.mk).
inside_hosts += $(differential_dir)/differential.inside $(differential_dir)/differential.linked
$(differential_dir)/differential.inside: $(differential_objects) $(differential_dir)/diff_load_linked.o \
    $(differential_dir)/diff_no_runtime.o $(inside_objects) $(archive) | $(link_deps_linked)
	$(say) LINK $@
	$(quiet)$(CC) $(CFLAGS) $(SANITIZE) -rdynamic -o $@ $(filter %.o,$^) $(archive) $(LDFLAGS) \
	    $(link_flags_linked) -ldl -lpthread
