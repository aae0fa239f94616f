#include "python_cut.h"

#include <string.h>

static uint32_t outer_of(uint32_t max)
{
    uint32_t quarter = max / 4;
    return quarter < GOS_PYTHON_OUTER_MAX ? quarter : GOS_PYTHON_OUTER_MAX;
}

static void put_outermost(struct gos_python_ref *refs, uint32_t max,
                          const struct gos_python_further *further)
{
    uint32_t outer = outer_of(max);
    uint32_t from_further = further->count < outer ? further->count : outer;
    uint32_t from_refs = outer - from_further;
    memmove(&refs[max - outer], &refs[max - from_refs], from_refs * sizeof *refs);
    for (uint32_t i = 0; i < from_further; i++) {
        uint32_t number = further->count - from_further + i;
        refs[max - from_further + i] = further->last[number % GOS_PYTHON_OUTER_MAX];
    }
}

void gos_python_cut(struct gos_python_ref *refs, uint32_t max,
                    const struct gos_python_further *further)
{
    uint32_t mark = max - 1;
    if (further->count < GOS_PYTHON_FURTHER_MAX) {
        put_outermost(refs, max, further);
        mark -= outer_of(max);
    }
    refs[mark] = (struct gos_python_ref){.code = 0};
}
