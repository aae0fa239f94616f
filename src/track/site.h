/*
 * Sites: call stacks interned.  A site is a Python stack, a native stack and a
 * tag, stored once; a record names it by number.  Sites are never removed.
 */
#ifndef GOS_TRACK_SITE_H
#define GOS_TRACK_SITE_H

#include <stdbool.h>
#include <stdint.h>

#define GOS_FRAME_MAX 64

/* Captured, not yet interned; lives on the capturing thread's stack. */
struct gos_stack {
    uint32_t native_count;
    uint32_t python_count;
    /* gos_stack_hash_native and _python of the frames, or 0: not computed yet. */
    uint64_t native_hash;
    uint64_t python_hash;
    const char *tag;                 /* interned, NULL: none (tag.h) */
    uintptr_t native[GOS_FRAME_MAX]; /* return addresses, newest first */
    struct gos_python_ref {
        uintptr_t code;      /* PyCodeObject of the frame */
        uint32_t offset;     /* of the current instruction, in bytes of co_code */
        uint32_t guard;      /* from the code's contents: its address may be reused */
    } python[GOS_FRAME_MAX]; /* newest first */
};

struct gos_native_frame {
    uint32_t module; /* index for gos_module_at, UINT32_MAX: in no module (JIT code) */
    uint64_t offset; /* of the return address from the module's base, or the address itself */
    uintptr_t address;
};

struct gos_python_frame {
    const char *file;     /* permanent, interned */
    const char *function; /* qualified name where the version has it */
    int line;
};

/* File of what stands for frames between the newest and the outermost that were not kept. */
#define GOS_PYTHON_CUT "<not kept>"

struct gos_site {
    uint32_t id;
    uint32_t native_count;
    uint32_t python_count;
    const char *tag; /* permanent, NULL: none */
    const struct gos_native_frame *native;
    const struct gos_python_frame *python;
};

/*
 * The number of this stack, 1…; 0 when it has neither frame nor tag or memory ran out.
 * Decodes Python frames when they are new, so the code objects must be alive:
 * call it on the thread that captured.  Hook context: yes.
 */
uint32_t gos_site_intern(const struct gos_stack *stack);

/* NULL for 0 or an unknown number.  The result is permanent.  Takes the lock the first time. */
const struct gos_site *gos_site_get(uint32_t id);
uint32_t gos_site_count(void);

/*
 * Which library asked: the first frame, newest first, that is neither ours nor
 * libcuda's nor libcudart's nor the C library's, nor of what calls functions on
 * behalf of an interpreter (libffi, ctypes, cffi).  UINT32_MAX if none.
 */
uint32_t gos_site_requester_module(const struct gos_site *site);

void gos_site_reset_after_fork(void);

#endif
