cli_sources := \
    command_options.c \
    command_run.c \
    command_show.c \
    complain.c \
    debug_info.c \
    demangle.c \
    draft_show.c \
    json_file.c \
    json_path.c \
    json_value.c \
    load.c \
    load_device.c \
    load_framework.c \
    load_growth.c \
    load_place.c \
    load_site.c \
    main.c \
    suggest.c \
    symbolize.c

# Statically, so that the command runs where jansson is not installed.
cli_ldlibs := -l:libjansson.a
