/*
 * What a framework refused out of a pool of its own, as its exception says:
 * JAX's arena is full, CuPy's limit is reached.  No call of CUDA fails then, so
 * that the exception is all that there is to see.
 */
#ifndef GOS_SHIM_REFUSED_H
#define GOS_SHIM_REFUSED_H

/* After each successful cuInit: see to it that such exceptions are seen.  Hook context. */
void gos_refused_watch(void);

#endif
