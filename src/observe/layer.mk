observe_sources := \
    command_line.c \
    contexts.c \
    control_group.c \
    device_state.c \
    environment.c \
    evidence.c \
    fallbacks.c \
    host.c \
    observe.c \
    peek.c \
    pool_state.c \
    processes.c \
    procfs.c \
    secrecy.c \
    snapshot.c \
    sort.c \
    streams.c \
    versions.c \
    wheel.c
