observe_sources := \
    allocator_stack.c \
    command_line.c \
    contexts.c \
    control_group.c \
    device_state.c \
    environment.c \
    evidence.c \
    fallbacks.c \
    frameworks.c \
    frameworks_read.c \
    frameworks_script.S \
    gil.c \
    growth.c \
    helper_thread.c \
    host.c \
    kernel_module.c \
    not_seen.c \
    observe.c \
    peek.c \
    pool_state.c \
    processes.c \
    procfs.c \
    python_api.c \
    python_call.c \
    python_end.c \
    python_error.c \
    python_exception.c \
    python_script.c \
    refusal_words.c \
    secrecy.c \
    snapshot.c \
    sort.c \
    streams.c \
    torch_version.c \
    versions.c \
    wheel.c

# Its text is put in as it stands.
$(BUILD)/src/observe/frameworks_script.o: src/observe/frameworks_script.py
