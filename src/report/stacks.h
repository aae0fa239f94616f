/*
 * The stacks that a report shows, looked up before the walk begins: text and
 * JSON then show the same frames, and the command, which has read a report
 * back, fills the same table from the file.
 */
#ifndef GOS_REPORT_STACKS_H
#define GOS_REPORT_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../base/memory.h"
#include "../base/module.h"
#include "../diagnose/diagnosis.h"
#include "../track/site.h"

struct gos_shown_frame {
    const struct gos_module *module; /* NULL: in no module */
    uint64_t offset;                 /* of the return address from the module's base */
    const char *symbol;              /* NULL: not looked up, or has none */
    uint64_t symbol_offset;
};

struct gos_shown_stack {
    uint32_t site;
    uint32_t native_count;
    uint32_t python_count;
    const char *tag;                /* NULL: none */
    struct gos_shown_frame *native; /* newest first */
    const struct gos_python_frame *python;
};

struct gos_stacks {
    struct gos_shown_stack *stacks; /* ascending by site */
    size_t count;
    const struct gos_module **modules; /* those that frames name, each once */
    size_t module_count;
    const struct gos_module *requester; /* the library that asked, NULL unknown */
};

#define GOS_STACKS_MODULES_MAX 4096

/* Sites beyond so many are listed in a report without their stack. */
#define GOS_STACKS_MAX 1000

/*
 * Look up the stacks of the request, of the site_max largest sites and of those
 * that pin device blocks.  Symbols are looked up in that order until budget_ns has
 * passed; frames after that have a module and an offset only.  0: none is.
 *
 * Everything is allocated in scratch; without memory fewer stacks are shown.
 * Hook context: yes.
 */
void gos_stacks_resolve(struct gos_stacks *stacks, struct gos_scratch *scratch,
                        const struct gos_diagnosis *diagnosis, size_t site_max, uint64_t budget_ns);

/* NULL when the site is 0 or was not looked up. */
const struct gos_shown_stack *gos_stacks_find(const struct gos_stacks *stacks, uint32_t site);

/* Ours or the interpreter's own machinery: of no help to a reader. */
bool gos_frame_is_noise(const struct gos_shown_frame *frame);
/* The import machinery, frozen into the interpreter. */
bool gos_python_frame_is_noise(const struct gos_python_frame *frame);

#endif
