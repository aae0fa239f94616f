#include "draft.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "../base/os.h"
#include "../base/readable.h"
#include "sink.h"

#define NAME_TRIES 100u
#define PAGE_BYTES 4096u
#define ROOM_BYTES (128u * 1024u) /* of a slot, at first, on the disk */

static struct own {
    struct gos_draft_header *header; /* of the mapped file; NULL: there is none */
    size_t mapped_bytes;
    uint64_t room_bytes[2]; /* that each slot has on the disk */
    uint64_t inode;
    bool is_in_use;
    char path[GOS_PATH_BYTES];
} own[GOS_DRAFT_MAX];

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

static uint64_t offset_of(const struct gos_draft_header *header, unsigned slot)
{
    return GOS_DRAFT_HEADER_BYTES + slot * header->slot_bytes;
}

/* --- room on the disk --- */

static int write_zeros(int fd, uint64_t offset, uint64_t bytes)
{
    static const char zeros[PAGE_BYTES];
    ssize_t put = 0;

    for (; bytes > 0; offset += (uint64_t)put, bytes -= (uint64_t)put) {
        put = gos_os.write_at(fd, zeros, bytes < sizeof zeros ? bytes : sizeof zeros, offset);
        if (put == -EINTR)
            put = 0;
        else if (put <= 0)
            return put < 0 ? (int)put : -EIO;
    }
    return 0;
}

static int allocate(int fd, uint64_t offset, uint64_t bytes)
{
    int result;

    do
        result = gos_os.allocate(fd, offset, bytes);
    while (result == -EINTR);
    return result == -EOPNOTSUPP || result == -ENOSYS ? write_zeros(fd, offset, bytes) : result;
}

/* More than is needed now, so that the next, slightly larger one finds room, too. */
static uint64_t room_for(const struct gos_draft_header *header, uint64_t bytes)
{
    uint64_t room = bytes * 2 > ROOM_BYTES ? round_up(bytes * 2) : ROOM_BYTES;

    return room < header->slot_bytes ? room : header->slot_bytes;
}

/* By its name, and only if that is still the file which is mapped. */
static int grow(struct own *draft, unsigned slot, uint64_t bytes)
{
    struct gos_file_status status;
    uint64_t room = room_for(draft->header, bytes);
    int fd = gos_os.open(draft->path, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0);

    if (fd < 0)
        return fd;
    int result = gos_os.status(fd, &status);
    if (result == 0 && status.inode != draft->inode)
        result = -ESTALE;
    if (result == 0)
        result = allocate(fd, offset_of(draft->header, slot), room);
    (void)gos_os.close(fd);
    if (result == 0)
        draft->room_bytes[slot] = room;
    return result;
}

/* --- a file --- */

/* Of what a file of this process may be long: the kernel answers more with a signal. */
static uint64_t slot_bytes_within_limit(void)
{
    uint64_t limit = gos_sink_file_limit();
    uint64_t each = limit > GOS_DRAFT_HEADER_BYTES ? (limit - GOS_DRAFT_HEADER_BYTES) / 2 : 0;

    each -= each % PAGE_BYTES;
    return each < GOS_DRAFT_SLOT_MAX_BYTES ? each : GOS_DRAFT_SLOT_MAX_BYTES;
}

/* Where address space is what has run out, slots that hold little more than this draft. */
static bool map(struct own *draft, struct gos_draft_header *header, int fd, uint64_t bytes)
{
    for (int tries = 0; tries < 2 && !draft->header; tries++) {
        if (tries > 0)
            header->slot_bytes = room_for(header, bytes);
        draft->mapped_bytes = GOS_DRAFT_HEADER_BYTES + 2 * (size_t)header->slot_bytes;
        draft->header = gos_os.map_file(fd, draft->mapped_bytes);
    }
    return draft->header != NULL;
}

static int take_room(struct own *draft, const struct gos_draft_header *header, int fd,
                     uint64_t bytes)
{
    uint64_t room = room_for(header, bytes);
    int result = gos_os.resize(fd, draft->mapped_bytes);

    if (result == 0)
        result = allocate(fd, 0, GOS_DRAFT_HEADER_BYTES + room);
    if (result == 0)
        result = allocate(fd, offset_of(header, 1), room);
    draft->room_bytes[0] = draft->room_bytes[1] = room;
    return result;
}

/* The header is written and not stored, for its page was not there when it was mapped. */
static int furnish(struct own *draft, const struct gos_new_file *file, uint64_t bytes)
{
    struct gos_draft_header header = {.magic = GOS_DRAFT_MAGIC,
                                      .format = GOS_DRAFT_FORMAT,
                                      .slot_bytes = slot_bytes_within_limit()};

    if (bytes > header.slot_bytes)
        return -EFBIG;
    draft->inode = file->inode;
    gos_owner_of_self(&header.owner);
    if (!map(draft, &header, file->fd, bytes))
        return -ENODEV;
    int result = take_room(draft, &header, file->fd, bytes);
    return result == 0 ? gos_os_write_all(file->fd, &header, sizeof header) : result;
}

static void forget(struct own *draft)
{
    if (draft->header)
        gos_os.unmap(draft->header, draft->mapped_bytes);
    memset(draft, 0, sizeof *draft);
}

/* What an earlier process of the same number left costs the next number. */
static int give_name(struct own *draft, struct gos_new_file *file, const struct gos_file_name *name)
{
    struct gos_file_name tried = *name;
    bool whole = false;
    int result = -EEXIST;

    for (unsigned i = 0; i < NAME_TRIES && result == -EEXIST; i++, tried.number += GOS_DRAFT_MAX) {
        result = gos_files_name(draft->path, &tried, "draft");
        if (result == 0)
            result = gos_new_file_name(file, draft->path, &whole);
    }
    return result == 0 && !whole ? gos_new_file_publish(file, draft->path) : result;
}

static int make_in(struct own *draft, const struct gos_file_name *name, uint64_t bytes)
{
    struct gos_new_file file;
    int result = gos_new_file_open(&file, name->directory);

    if (result < 0)
        return result;
    result = furnish(draft, &file, bytes);
    if (result == 0)
        result = give_name(draft, &file, name);
    gos_new_file_drop(&file);
    if (result < 0)
        forget(draft);
    return result;
}

static int make_elsewhere(struct own *draft, const struct gos_file_name *name, uint64_t bytes)
{
    struct gos_scratch scratch = {0};
    struct gos_file_name elsewhere = *name;
    char directory[GOS_PATH_BYTES];

    gos_files_fallback(directory, &scratch);
    gos_scratch_release(&scratch);
    elsewhere.directory = directory;
    return make_in(draft, &elsewhere, bytes);
}

static int make(struct own *draft, const struct gos_draft_words *words, unsigned index)
{
    struct gos_file_name name = words->name;
    char directory[GOS_PATH_BYTES];
    uint64_t bytes = words->bytes[0] + words->bytes[1];
    int result = name.directory ? 0 : gos_files_directory(directory);

    name.number = index;
    name.directory = name.directory ? name.directory : directory;
    if (result == 0)
        result = make_in(draft, &name, bytes);
    return result < 0 && gos_files_try_elsewhere(result) ? make_elsewhere(draft, &name, bytes)
                                                         : result;
}

/* --- what is in it --- */

static bool header_is_there(struct own *draft)
{
    return gos_is_writable(&draft->header->probe);
}

static bool slot_is_there(struct own *draft, unsigned slot, uint64_t bytes)
{
    char *page = (char *)draft->header + offset_of(draft->header, slot);
    char *end = page + bytes;

    for (; page < end; page += PAGE_BYTES)
        if (!gos_is_writable(page))
            return false;
    return true;
}

static void set_state(struct own *draft, unsigned slot, bool says_something)
{
    _Atomic uint64_t *state = &draft->header->state;

    atomic_store_explicit(state, gos_draft_next_state(*state, slot, says_something),
                          memory_order_release);
}

static bool is_beside(const struct own *draft, const char *directory)
{
    char own_directory[GOS_PATH_BYTES];

    if (!directory)
        return false;
    gos_files_directory_of(own_directory, draft->path);
    return strcmp(own_directory, directory) == 0;
}

static void copy(struct own *draft, unsigned slot, const struct gos_draft_words *words)
{
    struct gos_draft_slot *to = &draft->header->slots[slot];
    char *data = (char *)draft->header + offset_of(draft->header, slot);

    memcpy(data, words->data[0], words->bytes[0]);
    memcpy(data + words->bytes[0], words->data[1], words->bytes[1]);
    to->bytes[0] = words->bytes[0];
    to->bytes[1] = words->bytes[1];
    to->forms = words->forms;
    to->told_number = is_beside(draft, words->name.directory) ? words->told_number : 0;
    to->is_publishing = 0;
}

/* What was valid before stays so on failure. */
static int store(struct own *draft, const struct gos_draft_words *words)
{
    uint64_t bytes = words->bytes[0] + words->bytes[1];

    if (!draft->header)
        return -ENOENT;
    if (!header_is_there(draft))
        return -EIO;
    if (bytes > draft->header->slot_bytes)
        return -EFBIG;
    unsigned slot = 1 - gos_draft_slot_of(draft->header->state);
    int result = bytes > draft->room_bytes[slot] ? grow(draft, slot, bytes) : 0;
    if (result < 0)
        return result;
    if (!slot_is_there(draft, slot, bytes))
        return -EIO;
    copy(draft, slot, words);
    set_state(draft, slot, true);
    return 0;
}

static void make_void(struct own *draft)
{
    if (draft->header && header_is_there(draft))
        set_state(draft, gos_draft_slot_of(draft->header->state), false);
    draft->is_in_use = false;
}

static void remove_file(struct own *draft)
{
    if (draft->header)
        (void)gos_os.unlink(draft->path);
    forget(draft);
}

/* In the place of one that has no file, or whose file is cut short, moved away or without room. */
static int store_anew(struct own *draft, const struct gos_draft_words *words, unsigned index)
{
    struct own fresh = {.header = NULL};
    int result = make(&fresh, words, index);

    if (result == 0)
        result = store(&fresh, words);
    if (result < 0) {
        remove_file(&fresh);
        return result;
    }
    make_void(draft);
    remove_file(draft);
    *draft = fresh;
    return 0;
}

/* The first, but one that has its file is better; 0: none. */
static unsigned unused(void)
{
    unsigned found = 0;

    for (unsigned i = 1; i <= GOS_DRAFT_MAX; i++) {
        const struct own *draft = &own[i - 1];
        if (!draft->is_in_use && (!found || (draft->header && !own[found - 1].header)))
            found = i;
    }
    return found;
}

/* A draft whose slots were made small may have to be a larger one now. */
static bool is_larger_than_any(const struct own *draft, int result)
{
    return result == -EFBIG && draft->header->slot_bytes >= slot_bytes_within_limit();
}

int gos_draft_store(unsigned *draft, const struct gos_draft_words *words)
{
    unsigned index = *draft ? *draft : unused();

    if (index == 0)
        return -EBUSY;
    struct own *used = &own[index - 1];
    int result = store(used, words);
    if (result < 0 && !is_larger_than_any(used, result))
        result = store_anew(used, words, index);
    if (result == 0)
        *draft = index;
    else if (*draft && !(used->header && header_is_there(used)))
        *draft = 0;
    used->is_in_use = *draft != 0;
    return result;
}

/* A kill in between leaves a draft whose files are not looked for. */
void gos_draft_publishing(unsigned draft, uint32_t number, const uint64_t inodes[GOS_DRAFT_FORMS])
{
    struct own *used = &own[draft - 1];

    if (!used->header || !header_is_there(used))
        return;
    struct gos_draft_slot *slot = &used->header->slots[gos_draft_slot_of(used->header->state)];
    atomic_store_explicit(&slot->is_publishing, 0, memory_order_release);
    slot->new_number = number;
    memcpy(slot->inodes, inodes, sizeof slot->inodes);
    atomic_store_explicit(&slot->is_publishing, 1, memory_order_release);
}

void gos_draft_void(unsigned *draft)
{
    if (*draft)
        make_void(&own[*draft - 1]);
    *draft = 0;
}

const char *gos_draft_path(unsigned draft)
{
    return draft ? own[draft - 1].path : "";
}

bool gos_draft_is_own(const char *path)
{
    for (unsigned i = 0; i < GOS_DRAFT_MAX; i++)
        if (own[i].header && strcmp(own[i].path, path) == 0)
            return true;
    return false;
}

void gos_draft_end(void)
{
    for (unsigned i = 0; i < GOS_DRAFT_MAX; i++) {
        if (!own[i].is_in_use)
            remove_file(&own[i]);
    }
}

void gos_draft_reset_after_fork(void)
{
    for (unsigned i = 0; i < GOS_DRAFT_MAX; i++)
        forget(&own[i]);
}
