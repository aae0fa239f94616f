shim_sources := call.c cudart.c dlsym.c episode.c failure.c hook_capture.c hook_context.c \
	hook_device.c hook_host.c hook_resolver.c hook_runtime.c hook_stream_ordered.c hook_vmm.c \
	hook_watched.c place.c public.c state.c wrapper.c
