report_sources := \
    document.c \
    document_device.c \
    document_framework.c \
    document_growth.c \
    document_place.c \
    document_rehearsal.c \
    document_site.c \
    emitter.c \
    files.c \
    outputs.c \
    report.c \
    screen.c \
    screen_ledger.c \
    screen_lines.c \
    screen_place.c \
    screen_rehearsal.c \
    screen_sites.c \
    screen_told.c \
    sink.c \
    stacks.c \
    utf8.c
