cli_sources := \
    build_id.c \
    command_options.c \
    command_run.c \
    command_show.c \
    complain.c \
    demangle.c \
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
    symbol_table.c \
    symbolize.c

# Statically, so that the command runs where jansson is not installed.
cli_ldlibs := -l:libjansson.a
