/*
 * Device blocks of 2 MiB, shared by requests of up to 1 MiB: two of 1 MiB, two
 * of 700 KiB, 4096 of 512 bytes.  A block goes back to the device when its last
 * piece is freed; until then its unused part serves small requests only.  That
 * is the fragmentation of a real device [H200].
 *
 * Runs under the driver lock.
 */
#ifndef SIM_BLOCKS_H
#define SIM_BLOCKS_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#define SIM_PIECE_MAX_BYTES (UINT64_C(1) << 20)

struct sim_block;

/* A piece for `bytes` (at most SIM_PIECE_MAX_BYTES); 0 when the device is full. */
uint64_t sim_block_cut(CUcontext context, uint64_t bytes, struct sim_block **block);
void sim_block_paste(struct sim_block *block, uint64_t address, uint64_t bytes);

#endif
