/*
 * Where emitted characters go: a buffer in scratch memory that grows up to a
 * limit, and then is written to a file descriptor, or, without one, kept.
 *
 * Output never fails at the call: the first error is remembered, later output
 * is dropped, and gos_sink_finish tells.  Hook context: yes.
 */
#ifndef GOS_REPORT_SINK_H
#define GOS_REPORT_SINK_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../base/memory.h"

#define GOS_SINK_FILE_BYTES (256u * 1024u)

struct gos_sink {
    struct gos_scratch *scratch;
    char *data; /* not terminated */
    size_t size;
    size_t used;
    size_t limit;
    int fd;               /* -1: kept in memory */
    int error;            /* first -errno, else 0 */
    uint64_t total_bytes; /* put so far */
    /*
     * RLIMIT_FSIZE, for a file: the kernel answers a write beyond it with a
     * signal that ends the process, so what does not fit is -EFBIG instead.
     */
    uint64_t file_limit_bytes;
    char reserve[256]; /* first buffer, and the last resort without memory */
};

/* RLIMIT_FSIZE; UINT64_MAX: unlimited. */
uint64_t gos_sink_file_limit(void);

/* fd stays the caller's; with -1 at most `limit` bytes are kept, more is -EFBIG. */
void gos_sink_open(struct gos_sink *sink, struct gos_scratch *scratch, int fd, size_t limit);

void gos_sink_put_slowly(struct gos_sink *sink, const char *data, size_t bytes);

/* Reports are made of very many very short pieces, hence inline. */
static inline void gos_sink_put(struct gos_sink *sink, const char *data, size_t bytes)
{
    if (bytes > sink->size - sink->used || sink->error) {
        gos_sink_put_slowly(sink, data, bytes);
        return;
    }
    memcpy(sink->data + sink->used, data, bytes);
    sink->used += bytes;
    sink->total_bytes += bytes;
}

/* Write what is left.  0 or the first -errno. */
__attribute__((warn_unused_result)) int gos_sink_finish(struct gos_sink *sink);

#endif
