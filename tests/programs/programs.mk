# Small hosts, one situation each.  Every driver host is built three times, once
# for each way to reach the driver; runtime hosts link cudart.

driver_hosts := address_limit alloc_kinds churn fail_together forked leak refused_free \
                scenario_3 scenario_4 scenario_5 scenario_6 scenario_8
runtime_hosts := runtime_pair runtime_recovered
load_paths := linked dlsym resolver

load_flag_linked := -DLOAD_LINKED
load_flag_dlsym := -DLOAD_DLSYM
load_flag_resolver := -DLOAD_RESOLVER

# Where libcuda and libcudart are linked from: the simulated GPU, or a toolkit.
cuda_link_dir ?= $(BUILD)/sim
cudart_link_dir ?= $(BUILD)/sim
programs_dir := $(BUILD)/tests/programs

programs := $(foreach path,$(load_paths),$(driver_hosts:%=$(programs_dir)/%.$(path))) \
            $(runtime_hosts:%=$(programs_dir)/%.runtime) $(programs_dir)/lookup \
            $(programs_dir)/libforeign_cu.so $(programs_dir)/libsecond_preload.so

build_host = mkdir -p $(@D) && $(CC) $(host_flags) -MMD -MP -MF $@.d -MT $@ -O0 \
             -o $@ $< $(LDFLAGS)

link_flags_linked := -L$(cuda_link_dir) -Wl,--allow-shlib-undefined -lcuda
link_deps_linked := $(addprefix $(cuda_link_dir)/,$(if $(filter $(BUILD)/sim,$(cuda_link_dir)),libcuda.so.1) libcuda.so)

define driver_host_rule
$(programs_dir)/%.$(1): tests/programs/%.c $(if $(filter linked,$(1)),| $(link_deps_linked))
	$$(say) HOST $$@
	$$(quiet)$$(build_host) $$(load_flag_$(1)) $$(link_flags_$(1)) -ldl -lpthread
endef
$(foreach path,$(load_paths),$(eval $(call driver_host_rule,$(path))))

$(programs_dir)/%.runtime: tests/programs/%.c | $(cudart_link_dir)/libcudart.so.13
	$(say) HOST $@
	$(quiet)$(build_host) -L$(cudart_link_dir) -l:libcudart.so.13 -Wl,--allow-shlib-undefined -lpthread

$(programs_dir)/lookup: tests/programs/lookup.c
	$(say) HOST $@
	$(quiet)$(build_host) -rdynamic -ldl

$(programs_dir)/lib%.so: tests/programs/%.c
	$(say) HOST $@
	$(quiet)$(build_host) -shared -fPIC -ldl
