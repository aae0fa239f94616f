observe_sources := \
    command_line.c \
    contexts.c \
    control_group.c \
    device_state.c \
    environment.c \
    evidence.c \
    gil.c \
    helper_thread.c \
    host.c \
    observe.c \
    peek.c \
    pool_state.c \
    processes.c \
    procfs.c \
    python_api.c \
    python_call.c \
    secrecy.c \
    snapshot.c \
    sort.c \
    streams.c \
    versions.c \
    wheel.c
