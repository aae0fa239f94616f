/*
 * System calls without libc: no errno, no cancellation point, nothing that a
 * host or another preload library could have replaced.
 *
 * long gos_syscall(long number, long a, … f): the kernel's result, -errno on failure.
 * gos_cpu_relax(): a hint that the caller spins.
 */
#ifndef GOS_BASE_SYSCALL_H
#define GOS_BASE_SYSCALL_H

#if defined(__x86_64__)
#include "syscall_x86_64.h"
#elif defined(__aarch64__)
#include "syscall_aarch64.h"
#else
#error "x86-64 and aarch64 only"
#endif

#endif
