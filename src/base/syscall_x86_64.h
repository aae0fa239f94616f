#ifndef GOS_BASE_SYSCALL_X86_64_H
#define GOS_BASE_SYSCALL_X86_64_H

#define GOS_VDSO_CLOCK_GETTIME "__vdso_clock_gettime"

static inline long gos_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;

    /* The instruction itself destroys rcx (return address) and r11 (flags). */
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static inline void gos_cpu_relax(void)
{
    __asm__ volatile("pause" ::: "memory");
}

#endif
