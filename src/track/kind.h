/* What kind of memory a record stands for. */
#ifndef GOS_TRACK_KIND_H
#define GOS_TRACK_KIND_H

#include <stdbool.h>

/*
 * KIND(NAME, "code", "words for people", on the device's books, may share a 2 MiB block)
 * "On the device's books" means that a byte of it is a byte less in cuMemGetInfo.
 * IMPORTED and HANDLE own no bytes: theirs are the size of what somebody else owns, or
 * 0 where the driver does not tell.
 */
#define GOS_KINDS(KIND)                                                                            \
    KIND(DEVICE, "device", "device memory", true, true)                                            \
    KIND(POOL, "pool", "stream-ordered memory", false, false)                                      \
    KIND(PHYSICAL, "physical", "physical memory (VMM)", true, false)                               \
    KIND(ARRAY, "array", "arrays", true, false)                                                    \
    KIND(MANAGED, "managed", "managed memory", false, false)                                       \
    KIND(GRAPH, "graph", "graph-owned memory", false, false)                                       \
    KIND(IMPORTED, "imported", "memory of another process (IPC)", false, false)                    \
    KIND(HANDLE, "handle", "imported and multicast handles", false, false)                         \
    KIND(HOST, "host", "pinned host memory", false, false)                                         \
    KIND(REGISTERED, "registered", "registered host memory", false, false)                         \
    KIND(ADDRESS, "address", "reserved address space", false, false)                               \
    KIND(MAPPING, "mapping", "mapped physical memory", false, false)                               \
    KIND(NONE, "none", "no allocation", false, false)

enum gos_kind {
#define GOS_KIND_ENUM(name, code, words, books, shares) GOS_KIND_##name,
    GOS_KINDS(GOS_KIND_ENUM)
#undef GOS_KIND_ENUM
        GOS_KIND_COUNT
};

const char *gos_kind_code(enum gos_kind kind);
const char *gos_kind_words(enum gos_kind kind);
bool gos_kind_on_device_books(enum gos_kind kind);
bool gos_kind_may_share_block(enum gos_kind kind);

#endif
