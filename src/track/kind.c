#include "kind.h"

static const struct {
    const char *code;
    const char *words;
    bool on_device_books;
    bool may_share_block;
} kinds[GOS_KIND_COUNT] = {
#define KIND_ROW(name, code, words, books, shares) [GOS_KIND_##name] = {code, words, books, shares},
    GOS_KINDS(KIND_ROW)
#undef KIND_ROW
};

static enum gos_kind known(enum gos_kind kind)
{
    return (unsigned)kind < GOS_KIND_COUNT ? kind : GOS_KIND_NONE;
}

const char *gos_kind_code(enum gos_kind kind)
{
    return kinds[known(kind)].code;
}

const char *gos_kind_words(enum gos_kind kind)
{
    return kinds[known(kind)].words;
}

bool gos_kind_on_device_books(enum gos_kind kind)
{
    return kinds[known(kind)].on_device_books;
}

bool gos_kind_may_share_block(enum gos_kind kind)
{
    return kinds[known(kind)].may_share_block;
}
