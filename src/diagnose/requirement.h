/*
 * Which driver a CUDA release needs, and what among the loaded files does not
 * fit together.
 *
 * Source of the table: NVIDIA, CUDA Toolkit Release Notes, "CUDA Toolkit and
 * Minimum Required Driver Version for CUDA Minor Version Compatibility"
 * (Linux), and for 10.x "CUDA Compatibility", minimum driver versions.  A
 * forward-compatibility package (cuda-compat, a libcuda of its own in a folder
 * "compat") lets an older kernel module serve a newer release; then the minimum
 * does not apply.
 */
#ifndef GOS_DIAGNOSE_REQUIREMENT_H
#define GOS_DIAGNOSE_REQUIREMENT_H

#include <stdbool.h>

#include "diagnosis.h"

/* The least driver for a release ("13.0", "12.8.90", "11"): "580"; NULL for one not in the table.
 */
const char *gos_requirement_driver(const char *cuda_release);

/* Is version a ("470.57.02") older than b?  Missing parts are 0; what is not a number is equal. */
bool gos_requirement_is_older(const char *a, const char *b);

/*
 * Fill the diagnosis' mismatches from evidence->versions; the most telling
 * first: those about the driver.  Then each of cuDNN, NCCL and cuBLAS of which
 * files of different versions are loaded, as far as both versions are known, or
 * files of different folders where they are not known that far.
 */
void gos_requirements_check(struct gos_evidence *evidence, struct gos_diagnosis *diagnosis);

#endif
