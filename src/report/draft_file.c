#include "draft_file.h"

#include <errno.h>
#include <string.h>

#include "../base/os.h"

#define READ_TRIES 20
#define READ_PAUSE_NS 1000000u

_Static_assert(sizeof(struct gos_draft_header) <= GOS_DRAFT_HEADER_BYTES, "one page");

static int read_whole(int fd, void *to, size_t bytes, uint64_t offset)
{
    char *at = to;

    while (bytes > 0) {
        ssize_t got = gos_os.read_at(fd, at, bytes, offset);
        if (got == -EINTR)
            continue;
        if (got < 0)
            return (int)got;
        if (got == 0)
            return -EINVAL; /* cut short */
        at += got;
        offset += (uint64_t)got;
        bytes -= (size_t)got;
    }
    return 0;
}

static int check_header(const struct gos_draft_header *header)
{
    if (memcmp(header->magic, GOS_DRAFT_MAGIC, sizeof header->magic) != 0)
        return -EINVAL;
    if (header->format != GOS_DRAFT_FORMAT)
        return -EPROTO;
    if (header->slot_bytes == 0 || header->slot_bytes > GOS_DRAFT_SLOT_MAX_BYTES)
        return -EINVAL;
    return memchr(header->owner.boot_id, '\0', sizeof header->owner.boot_id) ? 0 : -EINVAL;
}

static int check_slot(const struct gos_draft *draft)
{
    uint64_t room = draft->header.slot_bytes;
    const uint64_t *bytes = draft->slot->bytes;

    return bytes[0] > 0 && bytes[0] < room && bytes[1] > 0 && bytes[1] <= room - bytes[0] ? 0
                                                                                          : -EINVAL;
}

/* What the disk lost in a power cut is zeros. */
static bool is_whole(const char *data, uint64_t bytes, const char *beginning)
{
    size_t length = strlen(beginning);

    return bytes > length && memcmp(data, beginning, length) == 0 && data[bytes - 1] == '\n' &&
           !memchr(data, '\0', bytes);
}

static int read_words(int fd, struct gos_draft *draft, struct gos_scratch *scratch)
{
    const uint64_t *bytes = draft->slot->bytes;
    uint64_t offset = GOS_DRAFT_HEADER_BYTES;
    char *data = gos_scratch_alloc(scratch, bytes[0] + bytes[1]);

    if (!data)
        return -ENOMEM;
    offset += draft->slot == &draft->header.slots[1] ? draft->header.slot_bytes : 0;
    int result = read_whole(fd, data, bytes[0] + bytes[1], offset);
    draft->data[0] = data;
    draft->data[1] = data + bytes[0];
    return result;
}

/* -EAGAIN: it was changed meanwhile, so what was read may be of two times. */
static int read_once(int fd, struct gos_draft *draft, struct gos_scratch *scratch)
{
    struct gos_draft_header again;
    int result = read_whole(fd, &draft->header, sizeof draft->header, 0);
    uint64_t state = draft->header.state;

    if (result == 0)
        result = check_header(&draft->header);
    if (result < 0)
        return result;
    if (!gos_draft_says_something(state))
        return -ENODATA;
    draft->slot = &draft->header.slots[gos_draft_slot_of(state)];
    result = check_slot(draft);
    if (result == 0)
        result = read_words(fd, draft, scratch);
    int reread = read_whole(fd, &again, sizeof again, 0);
    if (reread == 0 && again.state != state)
        return -EAGAIN;
    return result < 0 ? result : reread;
}

int gos_draft_read(int fd, struct gos_draft *draft, struct gos_scratch *scratch)
{
    int result = read_once(fd, draft, scratch);

    for (int i = 1; result == -EAGAIN && i < READ_TRIES; i++) {
        gos_os.sleep_ns(READ_PAUSE_NS);
        result = read_once(fd, draft, scratch);
    }
    if (result == 0 && !(is_whole(draft->data[0], draft->slot->bytes[0], "gpuoomshim ") &&
                         is_whole(draft->data[1], draft->slot->bytes[1], "{")))
        return -EINVAL;
    return result;
}
