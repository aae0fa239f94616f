/*
 * The value of GPUOOMSHIM_LIMIT: "24GiB" for every device, or a list of single
 * devices, "0:24GiB,1:16GiB".  "off" or "none" is no limit.
 */
#ifndef GOS_BASE_LIMIT_OPTION_H
#define GOS_BASE_LIMIT_OPTION_H

#include <stdint.h>

#define GOS_LIMIT_DEVICES 32

struct gos_limit_option {
    uint64_t bytes[GOS_LIMIT_DEVICES]; /* by ordinal; 0: no limit */
};

/*
 * 0, -EINVAL or -ERANGE; then *limit stays as it was.  A device that is named
 * twice, a limit of 0 and an empty item cannot be meant and are refused.
 */
__attribute__((warn_unused_result)) int gos_limit_option_parse(const char *value,
                                                               struct gos_limit_option *limit);

#endif
