/*
 * A report read back from its JSON: the same structures that it was written
 * from, so that the same walk prints it.
 */
#ifndef GOS_CLI_LOAD_H
#define GOS_CLI_LOAD_H

#include <jansson.h>

#include "../report/document.h"

struct gos_loaded {
    struct gos_scratch scratch;
    struct gos_evidence evidence;
    struct gos_diagnosis diagnosis;
    struct gos_report report;
    struct gos_document document;
    struct gos_module *modules; /* in the order of the file */
    size_t module_count;
};

/*
 * Fill a zeroed structure; strings stay in `root`, which must outlive it.
 * 0, -EINVAL after a complaint when it is no report of this schema, -ENOMEM.
 */
__attribute__((warn_unused_result)) int gos_load(struct gos_loaded *loaded, const json_t *root);

/* Parts, each for one part of the file.  0 or -ENOMEM. */
__attribute__((warn_unused_result)) int gos_load_devices(struct gos_loaded *loaded,
                                                         const json_t *root);
__attribute__((warn_unused_result)) int gos_load_sites(struct gos_loaded *loaded,
                                                       const json_t *root);
__attribute__((warn_unused_result)) int gos_load_growth(struct gos_loaded *loaded,
                                                        const json_t *root);
__attribute__((warn_unused_result)) int gos_load_frameworks(struct gos_loaded *loaded,
                                                            const json_t *root);
__attribute__((warn_unused_result)) int gos_load_place(struct gos_loaded *loaded,
                                                       const json_t *root);

/*
 * Room for one element of `bytes` per element of the array at key; *count is
 * their number.  NULL without memory and, with *count 0, for an empty array.
 */
void *gos_load_array(struct gos_loaded *loaded, const json_t *object, const char *key, size_t bytes,
                     size_t *count);

/* Live bytes by kind, from {"kind", "live_bytes", "live_count"} rows. */
void gos_load_live(struct gos_total live[GOS_KIND_COUNT], const json_t *object);

#endif
