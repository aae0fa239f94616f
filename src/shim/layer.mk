shim_sources := \
    call.c \
    context_end.c \
    cudart.c \
    dlsym.c \
    episode.c \
    failure.c \
    hook_array.c \
    hook_capture.c \
    hook_context.c \
    hook_device.c \
    hook_graph.c \
    hook_host.c \
    hook_launch.c \
    hook_load.c \
    hook_pool.c \
    hook_primary.c \
    hook_resolver.c \
    hook_runtime.c \
    hook_sharing.c \
    hook_stream_ordered.c \
    hook_vmm.c \
    hook_watched.c \
    place.c \
    public.c \
    state.c \
    watched.c \
    wrapper.c
