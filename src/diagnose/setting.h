/*
 * Which settings of frameworks and of CUDA are already on, so that advice does
 * not repeat them.  The value at first CUDA use counts: later changes are not
 * read by anybody.
 */
#ifndef GOS_DIAGNOSE_SETTING_H
#define GOS_DIAGNOSE_SETTING_H

#include <stdbool.h>

#include "../observe/evidence.h"

/* NULL when it was not set at first CUDA use (or is not on the allow-list). */
const char *gos_setting_get(const struct gos_evidence *evidence, const char *name);

/* It has that value, upper and lower case alike. */
bool gos_setting_is(const struct gos_evidence *evidence, const char *name, const char *value);
/* It has a value that means yes: "1", "true", "on", "yes". */
bool gos_setting_is_on(const struct gos_evidence *evidence, const char *name);
/* It has a value that means no: "0", "false", "off", "no". */
bool gos_setting_is_off(const struct gos_evidence *evidence, const char *name);

/* Its value now, where it was set only after the first CUDA use, when nobody reads it; else NULL.
 */
const char *gos_setting_late(const struct gos_evidence *evidence, const char *name);

/*
 * The value of `key` in PyTorch's allocator configuration, as torch says or by
 * environment (PYTORCH_ALLOC_CONF, PYTORCH_CUDA_ALLOC_CONF: "key:value,key:value"): true
 * when it is there at all.
 */
bool gos_setting_torch_has(const struct gos_evidence *evidence, const char *key);

/* max_split_size is limited, as torch says or by configuration. */
bool gos_setting_torch_splits_are_limited(const struct gos_evidence *evidence);

/* garbage_collection_threshold is set, as torch says or by configuration. */
bool gos_setting_torch_collects(const struct gos_evidence *evidence);

/*
 * expandable_segments is on, as torch says, by configuration or because its
 * memory shows it.
 */
bool gos_setting_torch_expandable(const struct gos_evidence *evidence);

/* The name to advise: the one that is already in use, else the older one, which all know. */
const char *gos_setting_torch_name(const struct gos_evidence *evidence);

#endif
