# The simulated GPU: stand-ins for libcuda, libcudart and libnvidia-ml.
#
#   make sim         builds them into $(BUILD)/sim
#   make sim-check   runs their own tests
#   make sim-check-gpu   runs the same tests on the driver of this machine
#
# From the including Makefile: CC, CFLAGS, CUDA_INCLUDE, BUILD.

BUILD ?= build
CUDA_INCLUDE ?= /usr/local/cuda/include

SIM_SOURCE := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
SIM_BUILD := $(BUILD)/sim

# -Bsymbolic: the simulator's own calls must not come back to a preloaded hook,
# or a hook that forgets to forward would pass its tests.
SIM_CFLAGS := -std=gnu11 -fPIC -fvisibility=hidden -ftls-model=initial-exec \
	-Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
	-D_GNU_SOURCE -D__CUDA_API_VERSION_INTERNAL -D__CUDA_API_PUSH_VISIBILITY_DEFAULT \
	$(if $(filter 1,$(WERROR)),-Werror) $(addprefix -isystem ,$(CUDA_INCLUDE)) -MMD -MP
SIM_LDFLAGS := -shared -Wl,-Bsymbolic -Wl,-z,defs

SIM_CUDA := \
	sim_array.c \
	sim_blocks.c \
	sim_books.c \
	sim_call.c \
	sim_capacity.c \
	sim_capture.c \
	sim_context.c \
	sim_copy.c \
	sim_device.c \
	sim_error.c \
	sim_event_calls.c \
	sim_graph.c \
	sim_graph_calls.c \
	sim_host.c \
	sim_ipc.c \
	sim_memory.c \
	sim_memory_calls.c \
	sim_module.c \
	sim_pool.c \
	sim_pool_calls.c \
	sim_query.c \
	sim_range.c \
	sim_resolver.c \
	sim_settings.c \
	sim_stream.c \
	sim_stream_calls.c \
	sim_vmm.c \
	sim_zero_cost.c
SIM_CUDART := \
	sim_cudart.c \
	sim_cudart_error.c \
	sim_cudart_memory.c \
	sim_cudart_stream.c
SIM_NVML := \
	sim_capacity.c \
	sim_nvml.c \
	sim_settings.c

SIM_SELFTEST := \
	selftest.c \
	selftest_capture.c \
	selftest_memory.c \
	selftest_pool.c \
	selftest_process.c \
	selftest_runtime.c

SIM_SELFTEST_OBJECTS := $(SIM_SELFTEST:%.c=$(SIM_BUILD)/obj/%.o)
SIM_CUDA_OBJECTS := $(SIM_CUDA:%.c=$(SIM_BUILD)/obj/%.o)
SIM_CUDART_OBJECTS := $(SIM_CUDART:%.c=$(SIM_BUILD)/obj/%.o)
SIM_NVML_OBJECTS := $(SIM_NVML:%.c=$(SIM_BUILD)/obj/%.o)

SIM_LIBRARIES := \
	$(SIM_BUILD)/libcuda.so.1 \
	$(SIM_BUILD)/libcuda.so \
	$(SIM_BUILD)/libcudart.so.13 \
	$(SIM_BUILD)/libcudart.so \
	$(SIM_BUILD)/libnvidia-ml.so.1

ifeq ($(V),1)
sim_quiet :=
else
sim_quiet = @echo "  $(1)  $(2)";
endif

.PHONY: sim sim-check sim-check-gpu sim-headers
sim: $(SIM_LIBRARIES)

# One line instead of a page of errors.
sim-headers:
	@version=$$(sed -n 's/^#define CUDA_VERSION \([0-9]*\).*/\1/p' \
	    $(CUDA_INCLUDE:%=%/cuda.h) 2>/dev/null | head -n 1); \
	[ "$${version:-0}" -ge 12000 ] || { echo "the simulated GPU needs CUDA headers 12.0 or newer;" \
	    "$(CUDA_INCLUDE) has $${version:-none}" >&2; exit 1; }

$(SIM_BUILD)/obj/%.o: $(SIM_SOURCE)/%.c | $(SIM_BUILD)/obj sim-headers
	$(call sim_quiet,CC   ,$@)$(CC) $(CFLAGS) $(SIM_CFLAGS) -c $< -o $@

$(SIM_BUILD)/libcuda.so.1: $(SIM_CUDA_OBJECTS)
	$(call sim_quiet,LINK ,$@)$(CC) $(CFLAGS) $(SIM_LDFLAGS) -Wl,-soname,libcuda.so.1 $^ -o $@ \
		$(LDFLAGS) -lpthread

$(SIM_BUILD)/libcudart.so.13: $(SIM_CUDART_OBJECTS) $(SIM_SOURCE)/sim_cudart.map
	$(call sim_quiet,LINK ,$@)$(CC) $(CFLAGS) $(SIM_LDFLAGS) -Wl,-soname,libcudart.so.13 \
		-Wl,--version-script=$(SIM_SOURCE)/sim_cudart.map $(SIM_CUDART_OBJECTS) -o $@ \
		$(LDFLAGS) -ldl -lpthread

$(SIM_BUILD)/libnvidia-ml.so.1: $(SIM_NVML_OBJECTS)
	$(call sim_quiet,LINK ,$@)$(CC) $(CFLAGS) $(SIM_LDFLAGS) -Wl,-soname,libnvidia-ml.so.1 $^ \
		-o $@ $(LDFLAGS) -ldl -lpthread

$(SIM_BUILD)/libcuda.so $(SIM_BUILD)/libcudart.so: | $(SIM_BUILD)/obj
	$(call sim_quiet,LN   ,$@)ln -sf $(notdir $@)$(if $(findstring cudart,$@),.13,.1) $@

$(SIM_BUILD)/obj:
	@mkdir -p $@

$(SIM_BUILD)/selftest: $(SIM_SELFTEST_OBJECTS)
	$(call sim_quiet,LINK ,$@)$(CC) $(CFLAGS) $^ -o $@ $(LDFLAGS) -lcmocka -ldl -lpthread

sim-check: sim $(SIM_BUILD)/selftest
	$(call sim_quiet,TEST ,sim selftest)LD_LIBRARY_PATH=$(SIM_BUILD) $(SIM_BUILD)/selftest

# The simulator is right when a real driver passes, too; 77 means that there is none.
sim-check-gpu: $(SIM_BUILD)/selftest
	$(call sim_quiet,TEST ,selftest on a real driver)$(SIM_BUILD)/selftest || [ $$? -eq 77 ]

-include $(SIM_CUDA_OBJECTS:.o=.d) $(SIM_CUDART_OBJECTS:.o=.d) $(SIM_NVML_OBJECTS:.o=.d)
-include $(SIM_SELFTEST_OBJECTS:.o=.d)
