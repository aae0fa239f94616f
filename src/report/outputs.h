/*
 * The files of one report, text and JSON, as one: both are complete under
 * temporary names before either gets its own, and they share a number.
 */
#ifndef GOS_REPORT_OUTPUTS_H
#define GOS_REPORT_OUTPUTS_H

#include <stdint.h>

#include "document.h"
#include "files.h"

/* Text is 0 and JSON 1, as in a draft. */
#define GOS_OUTPUT_FORMS 2

/* What is written, and how it is called. */
struct gos_contents {
    uint32_t forms;                      /* GOS_REPORT_TEXT | GOS_REPORT_JSON */
    struct gos_file_name name;           /* number and directory apart */
    const struct gos_document *document; /* NULL: the following, text and JSON */
    const char *data[GOS_OUTPUT_FORMS];
    size_t bytes[GOS_OUTPUT_FORMS];
};

/*
 * Write the wanted forms into the directory; the paths and the number go into
 * the report.  A report whose paths are filled is rewritten in its place (then
 * `directory` is not used), as is one with a path_prefix.  Numbers are tried
 * from report->number on.  0 or -errno, with nothing left behind.
 *
 * A draft of the report learns under which names the files appear.
 * Hook context: yes.
 */
__attribute__((warn_unused_result)) int gos_outputs_write(struct gos_report *report,
                                                          const struct gos_contents *contents,
                                                          struct gos_scratch *scratch,
                                                          const char *directory);

#endif
