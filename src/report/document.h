/*
 * The report itself: one walk over a diagnosis, the same for text and JSON.
 *
 * Pure: reads what it is given and emits; no driver, no clock, no globals, so
 * that the command can walk a report that it has read back from its JSON.
 */
#ifndef GOS_REPORT_DOCUMENT_H
#define GOS_REPORT_DOCUMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "../base/loss.h"
#include "../base/text.h"
#include "emitter.h"
#include "report.h"
#include "stacks.h"

#define GOS_REPORT_SCHEMA "gpuoomshim.report/1"

/* How well the tracking itself went. */
struct gos_health {
    uint64_t losses[GOS_LOSS_COUNT];
    const char *fuse_reason; /* NULL while whole */
};

/* Whether its process has told it, where it has not. */
enum gos_standing {
    GOS_STANDING_TOLD,
    GOS_STANDING_DRAFT,    /* the process goes on */
    GOS_STANDING_LEFT,     /* the process has ended */
    GOS_STANDING_ELSEWHERE /* one of the two */
};

struct gos_document {
    const struct gos_report *report;
    struct gos_stacks stacks;
    struct gos_health health;
    const char *version; /* of the shim that saw it */
    bool complete;       /* text: every site and every frame */
    bool is_brief;       /* a draft, made in a fraction of a millisecond: the newest and largest */
    struct {
        size_t count;
        uint64_t live_bytes;
    } left_out; /* smaller sites, which the file that it was read from does not list */
    enum gos_standing standing;
    uint64_t found_wall_ns; /* when another process made a report of the draft; 0: was none */
};

/* Everything, in order. */
void gos_document_emit(const struct gos_document *document, struct gos_emitter *emitter);

/*
 * A draft that becomes a report: the document's field, and the line of its text, are
 * the only places that change.
 */
#define GOS_DOCUMENT_NOT_FOUND "\"found_wall_ns\": null"
#define GOS_DOCUMENT_DRAFT_LINE "draft      "
void gos_document_found_field(struct gos_text *text, uint64_t found_wall_ns);
void gos_document_found_line(struct gos_text *text, uint64_t found_wall_ns);

/* Names used in both forms. */
const char *gos_report_kind_code(enum gos_report_kind kind);
const char *gos_outcome_code(enum gos_outcome outcome); /* NULL: none */
const char *gos_relation_code(enum gos_relation relation);
const char *gos_capture_code(enum gos_capture_state state);
const char *gos_part_code(enum gos_framework_part part);
const char *gos_setting_state_code(enum gos_setting_state state);

/* The parts, one for each room of the house. */
void gos_document_device(const struct gos_document *document, struct gos_emitter *emitter,
                         int ordinal);
void gos_document_sites(const struct gos_document *document, struct gos_emitter *emitter);
void gos_document_growth(const struct gos_document *document, struct gos_emitter *emitter);
void gos_document_stack(const struct gos_document *document, struct gos_emitter *emitter,
                        uint32_t site);
void gos_document_frameworks(const struct gos_document *document, struct gos_emitter *emitter);
void gos_document_place(const struct gos_document *document, struct gos_emitter *emitter);
void gos_document_rehearsal(const struct gos_document *document, struct gos_emitter *emitter);

/* Was anything rehearsed (GPUOOMSHIM_LIMIT, GPUOOMSHIM_INJECT)? */
bool gos_document_is_rehearsal(const struct gos_document *document);
/* Of the verdict's device; 0: none. */
uint64_t gos_document_limit(const struct gos_document *document);

/* Total and free memory of a device from the best source there is; false when there is none. */
bool gos_document_total(const struct gos_document *document, int ordinal, uint64_t *bytes);
bool gos_document_free(const struct gos_document *document, int ordinal, uint64_t *bytes);

#endif
