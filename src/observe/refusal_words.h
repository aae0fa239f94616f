/*
 * What an exception's name and message say, where a framework refused memory
 * out of a pool of its own and no call of CUDA failed.  Pure.
 */
#ifndef GOS_OBSERVE_REFUSAL_WORDS_H
#define GOS_OBSERVE_REFUSAL_WORDS_H

#include <stdbool.h>
#include <stdint.h>

struct gos_refusal_words {
    const char *framework; /* everyday name, permanent */
    bool asked_known;
    uint64_t asked_bytes; /* exact only where the message is */
};

/*
 * type and module as Python names the exception's class.  JAX: an exhausted
 * resource that is memory.  CuPy: refused by its pool's own limit; where the
 * driver refused CuPy a call of CUDA failed.  False: it is none of these.
 */
bool gos_refusal_words(const char *type, const char *module, const char *message,
                       struct gos_refusal_words *words);

#endif
