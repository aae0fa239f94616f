report_sources := \
    adopt.c \
    document.c \
    document_device.c \
    document_framework.c \
    document_growth.c \
    document_place.c \
    document_rehearsal.c \
    document_site.c \
    draft.c \
    draft_file.c \
    emitter.c \
    files.c \
    outputs.c \
    owner.c \
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
