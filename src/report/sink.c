#include "sink.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>

#include "../base/os.h"

uint64_t gos_sink_file_limit(void)
{
    uint64_t soft = 0;
    uint64_t hard = 0;
    return gos_os.limit(RLIMIT_FSIZE, &soft, &hard) < 0 ? UINT64_MAX : soft;
}

void gos_sink_open(struct gos_sink *sink, struct gos_scratch *scratch, int fd, size_t limit)
{
    sink->scratch = scratch;
    sink->data = sink->reserve;
    sink->size = sizeof sink->reserve;
    sink->used = 0;
    sink->limit = limit;
    sink->fd = fd;
    sink->error = 0;
    sink->total_bytes = 0;
    sink->file_limit_bytes = fd >= 0 ? gos_sink_file_limit() : UINT64_MAX;
}

static void flush(struct gos_sink *sink)
{
    if (sink->used == 0 || sink->error)
        return;
    bool fits = sink->total_bytes <= sink->file_limit_bytes;
    int result = fits ? gos_os_write_all(sink->fd, sink->data, sink->used) : -EFBIG;
    if (result < 0)
        sink->error = result;
    sink->used = 0;
}

/* Steps of four: the buffers outgrown on the way stay in scratch and should be few. */
static int grow(struct gos_sink *sink)
{
    size_t size = sink->size * 4 < sink->limit ? sink->size * 4 : sink->limit;
    if (size <= sink->size)
        return -EFBIG;
    char *data = gos_scratch_alloc(sink->scratch, size);
    if (!data)
        return -ENOMEM;
    memcpy(data, sink->data, sink->used);
    sink->data = data;
    sink->size = size;
    return 0;
}

/* A file gets its room back by writing, so only a kept buffer can be full for good. */
static void make_room(struct gos_sink *sink)
{
    int result = grow(sink);
    if (result == 0)
        return;
    if (sink->fd >= 0)
        flush(sink);
    else
        sink->error = result;
}

void gos_sink_put_slowly(struct gos_sink *sink, const char *data, size_t bytes)
{
    sink->total_bytes += bytes;
    while (bytes > 0 && !sink->error) {
        size_t room = sink->size - sink->used;
        size_t part = bytes < room ? bytes : room;
        memcpy(sink->data + sink->used, data, part);
        sink->used += part;
        data += part;
        bytes -= part;
        if (bytes > 0)
            make_room(sink);
    }
}

int gos_sink_finish(struct gos_sink *sink)
{
    if (sink->fd >= 0)
        flush(sink);
    return sink->error;
}
