#include "tag.h"

#include <stddef.h>
#include <string.h>

#include "../base/loss.h"
#include "../base/memory.h"

__thread struct gos_tags gos_tags __attribute__((tls_model("initial-exec")));

/* Back to where a character begins: the bytes within one have the form 10xxxxxx. */
static size_t length_of(const char *name)
{
    size_t length = strnlen(name, GOS_TAG_NAME_MAX + 1);
    if (length <= GOS_TAG_NAME_MAX)
        return length;
    length = GOS_TAG_NAME_MAX;
    while (length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80)
        length--;
    return length;
}

static const char *keep(const char *name)
{
    const char *kept = gos_arena_intern(name, length_of(name));
    if (!kept)
        gos_loss_count(GOS_LOSS_MEMORY);
    return kept;
}

void gos_tag_push(const char *name)
{
    struct gos_tags *tags = &gos_tags;
    if (tags->depth < GOS_TAG_NEST_MAX) {
        const char *kept = name && name[0] ? keep(name) : NULL;
        tags->current = kept ? kept : tags->current;
        tags->names[tags->depth] = tags->current;
    }
    tags->depth++;
}

void gos_tag_pop(void)
{
    struct gos_tags *tags = &gos_tags;
    if (tags->depth == 0)
        return;
    tags->depth--;
    if (tags->depth == 0)
        tags->current = NULL;
    else if (tags->depth < GOS_TAG_NEST_MAX)
        tags->current = tags->names[tags->depth - 1];
}
