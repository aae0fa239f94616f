/*
 * The value of GPUOOMSHIM_INJECT: which allocations are made to fail.
 *
 *     nth=5                                  the fifth
 *     every=100,kind=async,min=1MiB          of stream-ordered ones from 1 MiB on, each hundredth
 *     share=0.01,seed=7,site=model.py:41     one in a hundred of those that this line makes
 *
 * Exactly one of nth, every and share; the rest are filters and may be left
 * out.  kind may be given more than once; without it all kinds of device memory
 * are meant.
 */
#ifndef GOS_BASE_INJECT_OPTION_H
#define GOS_BASE_INJECT_OPTION_H

#include <stdbool.h>
#include <stdint.h>

enum gos_inject_rule {
    GOS_INJECT_NONE,
    GOS_INJECT_NTH,
    GOS_INJECT_EVERY,
    GOS_INJECT_SHARE,
};

/* INJECT_KIND(NAME, "word", one of those that are meant without a word) */
#define GOS_INJECT_KINDS(INJECT_KIND)                                                              \
    INJECT_KIND(DEVICE, "device", true)                                                            \
    INJECT_KIND(ASYNC, "async", true)                                                              \
    INJECT_KIND(PHYSICAL, "physical", true)                                                        \
    INJECT_KIND(ARRAY, "array", true)                                                              \
    INJECT_KIND(MANAGED, "managed", true)                                                          \
    INJECT_KIND(GRAPH, "graph", true)                                                              \
    INJECT_KIND(HOST, "host", false)                                                               \
    INJECT_KIND(LAUNCH, "launch", false)                                                           \
    INJECT_KIND(LOAD, "load", false)

enum gos_inject_kind {
#define GOS_INJECT_ENUM(name, word, usual) GOS_INJECT_##name,
    GOS_INJECT_KINDS(GOS_INJECT_ENUM)
#undef GOS_INJECT_ENUM
        GOS_INJECT_KIND_COUNT
};

struct gos_inject_option {
    enum gos_inject_rule rule;
    uint64_t number;    /* NTH, EVERY: at least 1 */
    uint32_t share_ppb; /* SHARE: of 1,000,000,000, at least 1 and at most all */
    uint64_t seed;      /* SHARE */
    uint32_t kinds;     /* bit i: enum gos_inject_kind i */
    uint64_t min_bytes;
    uint64_t max_bytes; /* UINT64_MAX: any */
    const char *site;   /* permanent; NULL: any */
    bool recover;       /* an injected failure starts recovery, as a real one does */
};

/* 0, -EINVAL, -ERANGE or -ENOMEM; then *inject stays as it was.  "", "off", "none": nothing. */
__attribute__((warn_unused_result)) int gos_inject_option_parse(const char *value,
                                                                struct gos_inject_option *inject);

/* Is the number-th call (1…) that passes the filters made to fail?  Pure. */
bool gos_inject_option_hits(const struct gos_inject_option *inject, uint64_t number);

#endif
