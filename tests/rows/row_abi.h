/*
 * How arguments travel on this machine, as far as rows need it: a word each in
 * registers, then on the stack; structures of up to two words as their words;
 * larger ones on the stack, or behind a word that points to them.
 */
#ifndef ROW_ABI_H
#define ROW_ABI_H

#if defined(__x86_64__)
#define ROW_REGISTERS 6
#define ROW_LARGE_BEHIND_POINTER 0
#elif defined(__aarch64__)
#define ROW_REGISTERS 8
#define ROW_LARGE_BEHIND_POINTER 1
#else
#error "how does this machine pass arguments?"
#endif

#endif
