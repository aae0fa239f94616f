/*
 * Made-up reports of many shapes: what a real failure would have filled in,
 * without a driver, and what a hostile host could put there.
 */
#ifndef GOS_TESTS_REPORT_SHAPES_H
#define GOS_TESTS_REPORT_SHAPES_H

#include "../../src/report/document.h"

struct shape {
    struct gos_evidence evidence;
    struct gos_diagnosis diagnosis;
    struct gos_report report;
    struct gos_document document;
};

/* Zero, then fill with shape number `index`; false when there is no such shape. */
bool shape_make(struct shape *shape, unsigned index);
const char *shape_name(unsigned index);
void shape_release(struct shape *shape);

/* The document in the given form, terminated; free it.  *length may be NULL. */
char *shape_emit(const struct gos_document *document, enum gos_form form, size_t *length);

#endif
