/*
 * The C library's own functions, past all that a host or another preload
 * library puts in front of them.
 *
 * A sanitizer replaces even strcmp, and asks dlsym for the real one before its
 * replacement works: whatever runs before the first dlsym is answered may call
 * nothing that can be replaced.  So this reads the loader's own list.
 */
#ifndef GOS_BASE_LIBC_SYMBOL_H
#define GOS_BASE_LIBC_SYMBOL_H

#include <stdint.h>

/*
 * Address of a function of libc, or of libdl where glibc (before 2.34) still
 * has one; 0 if there is none.  Allowed everywhere, also in dlsym.
 */
uintptr_t gos_libc_symbol(const char *name);

#endif
