# Small hosts, one situation each.  Every driver host is built three times, once
# for each way to reach the driver; runtime hosts link cudart.

driver_hosts := address_limit alloc_kinds asks asks_once capture_cached churn ends_jobs fail_together \
                flush_callback forked gives_up growth leak pending_kinds recovery refused_answers refused_free \
                rehearse_inject rehearse_limit retries scenario_3 scenario_4 scenario_5 scenario_6 \
                scenario_8 segments server threads_at_one_line xla_shape
cxx_driver_hosts := batch_halved
# Strange stacks: one way to reach the driver is enough.
stack_hosts := stack_dlopen stack_embedded stack_guard stack_jit stack_loader_lock stack_million \
               stack_reopened stack_signal stack_stub_python stack_tags stack_threads starting_python
runtime_hosts := runtime_own_cache runtime_pair runtime_recovered runtime_refused
driver_hosts += first_allocation forked_busy fragments host_memory ipc_full sticking_count \
                two_gpus watched_needs
driver_hosts += $(sort $(notdir $(basename $(wildcard tests/programs/regress_*.c))))
load_paths := linked dlsym resolver

load_flag_linked := -DLOAD_LINKED
load_flag_dlsym := -DLOAD_DLSYM
load_flag_resolver := -DLOAD_RESOLVER

# Where libcuda and libcudart are linked from: the simulated GPU, or a toolkit.
cuda_link_dir ?= $(BUILD)/sim
cudart_link_dir ?= $(BUILD)/sim
programs_dir := $(BUILD)/tests/programs

programs := $(foreach path,$(load_paths),$(driver_hosts:%=$(programs_dir)/%.$(path)) \
                                         $(cxx_driver_hosts:%=$(programs_dir)/%.$(path))) \
            $(runtime_hosts:%=$(programs_dir)/%.runtime) $(programs_dir)/lookup $(programs_dir)/weak_names \
            $(stack_hosts:%=$(programs_dir)/%.linked) $(programs_dir)/stack_exceptions \
            $(programs_dir)/libstack_constructor.so $(programs_dir)/libstub_python.so \
            $(programs_dir)/libstub_extension.so \
            $(programs_dir)/libstack_first.so $(programs_dir)/libstack_second.so \
            $(programs_dir)/libstub_free_threaded.so $(programs_dir)/liblookup_plugin.so \
            $(programs_dir)/libforeign_cu.so $(programs_dir)/libsecond_preload.so

build_host = mkdir -p $(@D) && $(CC) $(host_flags) -MMD -MP -MF $@.d -MT $@ -O0 \
             -o $@ $< $(LDFLAGS)
build_cxx_host = mkdir -p $(@D) && $(CXX) -std=c++17 $(cuda_flags) -Iinclude -Wall -Wextra -Wshadow \
                 $(CPPFLAGS) $(CFLAGS) $(SANITIZE) -MMD -MP -MF $@.d -MT $@ -O1 -o $@ $< $(LDFLAGS)

link_flags_linked := -L$(cuda_link_dir) -Wl,--allow-shlib-undefined -lcuda
link_deps_linked := $(addprefix $(cuda_link_dir)/,$(if $(filter $(BUILD)/sim,$(cuda_link_dir)),libcuda.so.1) libcuda.so)

define driver_host_rule
$(programs_dir)/%.$(1): tests/programs/%.c $(if $(filter linked,$(1)),| $(link_deps_linked))
	$$(say) HOST $$@
	$$(quiet)$$(build_host) $$(load_flag_$(1)) $$(link_flags_$(1)) -ldl -lpthread
$(programs_dir)/%.$(1): tests/programs/%.cpp $(if $(filter linked,$(1)),| $(link_deps_linked))
	$$(say) HOST $$@
	$$(quiet)$$(build_cxx_host) $$(load_flag_$(1)) $$(link_flags_$(1)) -ldl -lpthread
endef
$(foreach path,$(load_paths),$(eval $(call driver_host_rule,$(path))))

# With the library inside instead of preloaded: for sanitizers, whose own library
# would have to be preloaded first and would then look itself up by our dlsym,
# before it is ready.  So everything but dlsym is in there, and dlclose, which they replace as well.
inside_hosts := $(driver_hosts:%=$(programs_dir)/%.inside)
inside_objects := $(filter-out %/dlclose.o %/dlsym.o %/dlsym_$(machine).o,$(shim_objects))

$(inside_hosts): $(programs_dir)/%.inside: tests/programs/%.c $(inside_objects) $(archive) \
    | $(link_deps_linked)
	$(say) HOST $@
	$(quiet)mkdir -p $(@D) && $(CC) $(host_flags) $(load_flag_linked) -MMD -MP -MF $@.d -MT $@ \
	    -O0 -rdynamic -o $@ $< $(inside_objects) $(archive) $(LDFLAGS) $(link_flags_linked) \
	    -ldl -lpthread

$(programs_dir)/%.runtime: tests/programs/%.c | $(cudart_link_dir)/libcudart.so.13
	$(say) HOST $@
	$(quiet)$(build_host) -L$(cudart_link_dir) -l:libcudart.so.13 -Wl,--allow-shlib-undefined -lpthread

$(programs_dir)/lookup: tests/programs/lookup.c
	$(say) HOST $@
	$(quiet)$(build_host) -rdynamic -ldl

$(programs_dir)/weak_names: tests/programs/weak_names.c
	$(say) HOST $@
	$(quiet)$(build_host)

# Stand-ins that bear the names of the libraries they stand for.
programs += $(programs_dir)/libc10_cuda.so $(programs_dir)/libc10_segments.so \
            $(programs_dir)/libc10_once.so $(programs_dir)/libcupy_once.so \
            $(programs_dir)/libnccl.so.2 $(programs_dir)/xla_extension.so
$(programs_dir)/xla_extension.so: tests/programs/stub_xla.c
$(programs_dir)/libc10_segments.so: tests/programs/stub_segments.c
$(programs_dir)/libc10_once.so $(programs_dir)/libcupy_once.so: tests/programs/stub_once.c
$(programs_dir)/xla_extension.so $(programs_dir)/libc10_segments.so $(programs_dir)/libc10_once.so \
$(programs_dir)/libcupy_once.so:
	$(say) HOST $@
	$(quiet)$(build_host) -shared -fPIC -Wl,-soname,$(@F)
$(programs_dir)/libc10_cuda.so: tests/programs/stub_torch.c | $(cudart_link_dir)/libcudart.so.13
$(programs_dir)/libnccl.so.2: tests/programs/stub_nccl.c | $(cudart_link_dir)/libcudart.so.13
$(programs_dir)/libc10_cuda.so $(programs_dir)/libnccl.so.2:
	$(say) HOST $@
	$(quiet)$(build_host) -shared -fPIC -Wl,-soname,$(@F) -L$(cudart_link_dir) -l:libcudart.so.13 \
	    -Wl,--allow-shlib-undefined -lpthread

# torch that tells of itself, in both ABIs; a third one to be loaded beside the first.
torch_1_macros := -DSTUB_TORCH_1 -DSTUB_AMOUNT=std::int64_t
torch_2_macros := -DSTUB_TORCH_2 -DSTUB_AMOUNT=std::size_t
torch_beside_macros := $(torch_2_macros)
torch_1_c10 := libc10.so
torch_2_c10 := libc10.so
torch_beside_c10 := libc10_beside.so

define torch_rule
programs += $(programs_dir)/$(1)/libc10_cuda.so
$(programs_dir)/$(1)/$($(1)_c10): tests/programs/stub_c10.cpp
	$$(say) HOST $$@
	$$(quiet)mkdir -p $$(@D) && $$(CXX) -std=c++17 -Wall -Wextra -Wshadow $$($(1)_macros) $$(CPPFLAGS) \
	    $$(CFLAGS) $$(SANITIZE) -MMD -MP -MF $$@.d -MT $$@ -O0 -shared -fPIC -Wl,-soname,$$(@F) \
	    -o $$@ $$< $$(LDFLAGS)
$(programs_dir)/$(1)/libc10_cuda.so: tests/programs/stub_torch.c $(programs_dir)/$(1)/$($(1)_c10) \
    | $(cudart_link_dir)/libcudart.so.13
	$$(say) HOST $$@
	$$(quiet)$$(build_host) $$($(1)_macros) -fexceptions -shared -fPIC -Wl,-soname,$$(@F) \
	    -L$$(@D) -l:$($(1)_c10) -Wl,-rpath,'$$$$ORIGIN' -L$(cudart_link_dir) -l:libcudart.so.13 \
	    -Wl,--allow-shlib-undefined -ldl -lpthread
endef
$(foreach torch,torch_1 torch_2 torch_beside,$(eval $(call torch_rule,$(torch))))

$(programs_dir)/libstack_first.so $(programs_dir)/libstack_second.so: tests/programs/stack_plugin.c
	$(say) HOST $@
	$(quiet)$(build_host) -shared -fPIC

$(programs_dir)/libstub_free_threaded.so: tests/programs/stub_python.c
	$(say) HOST $@
	$(quiet)$(build_host) -shared -fPIC -DSTUB_FREE_THREADED

$(programs_dir)/lib%.so: tests/programs/%.c
	$(say) HOST $@
	$(quiet)$(build_host) -shared -fPIC -ldl

$(programs_dir)/liblookup_plugin.so: tests/programs/lookup_plugin.c | $(link_deps_linked)
	$(say) HOST $@
	$(quiet)$(build_host) -shared -fPIC $(link_flags_linked) -ldl

# Its constructor finds the program's function by name.
$(programs_dir)/stack_dlopen.linked: LDFLAGS += -rdynamic

$(programs_dir)/stack_exceptions: tests/programs/stack_exceptions.cpp | $(link_deps_linked)
	$(say) HOST $@
	$(quiet)$(build_cxx_host) $(link_flags_linked) -lpthread

programs += $(programs_dir)/torch_words
$(programs_dir)/torch_words: tests/programs/torch_words.cpp | $(cudart_link_dir)/libcudart.so.13
	$(say) HOST $@
	$(quiet)$(build_cxx_host) -L$(cudart_link_dir) -l:libcudart.so.13 -Wl,--allow-shlib-undefined -ldl \
	    -lpthread
