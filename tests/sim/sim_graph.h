/*
 * Stream capture and graphs.
 *
 * While a stream captures, its work becomes nodes of a graph.  Calls that are
 * "unsafe" then return 900 and invalidate the capture; which ones, and for
 * which capture and thread modes, was measured on an H200.
 *
 * Memory of an allocation node has its address from the capture on, device
 * memory from the first launch on, and keeps it after its free until it is
 * trimmed or another request finds the device full.
 *
 * Runs under the driver lock.
 */
#ifndef SIM_GRAPH_H
#define SIM_GRAPH_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

#include "sim_call.h"
#include "sim_range.h"

enum sim_node_memory { SIM_NODE_BARE, SIM_NODE_LIVE, SIM_NODE_IDLE };

struct CUgraphNode_st {
    CUgraphNodeType type;
    CUgraph graph; /* NULL: outlived its graph because of its memory */
    CUhostFn function;
    void *argument;
    struct CUgraphNode_st *allocation; /* what a free node frees */
    struct sim_range *range;           /* of an allocation node */
    enum sim_node_memory memory;
    CUstream stream; /* last launch */
    uint64_t ticket;
    struct CUgraphNode_st *next; /* all allocation nodes */
};

struct CUgraph_st {
    uint32_t magic;
    unsigned references; /* its own and one per executable graph */
    size_t node_count, node_capacity;
    CUgraphNode *nodes;
};

/* Records stay after the end, with status NONE: events may still point to them. */
struct sim_capture {
    uint64_t id;
    CUstreamCaptureMode mode;
    CUstreamCaptureStatus status;
    const struct sim_thread *thread;
    CUstream origin;
    CUgraph graph;
    bool graph_is_given;
    struct sim_capture *next;
};

/* 900, and the captures invalidated, if this thread may not do unsafe things now. */
CUresult sim_capture_forbids(const struct sim_thread *thread);
/* The same for waiting for a stream or querying it. */
CUresult sim_capture_check_wait(CUstream stream);
/* Invalidates every active capture; true if there was one. */
bool sim_capture_kill_all(void);
/* The stream is being destroyed. */
void sim_capture_abandon(CUstream stream);
CUresult sim_capture_join(CUstream stream, struct sim_capture *capture);

/* Work issued to a capturing stream.  901 when the capture is invalid already. */
CUresult sim_capture_mark(CUstream stream);
CUresult sim_capture_work(CUstream stream, CUgraphNodeType type);
CUresult sim_capture_host(CUstream stream, CUhostFn function, void *argument);
CUresult sim_capture_take(CUstream stream, int device, uint64_t bytes, CUdeviceptr *address);
CUresult sim_capture_give(CUstream stream, const struct sim_range *range);

CUgraph sim_graph_make(void);
void sim_graph_release(CUgraph graph);
/* NULL without metadata memory. */
CUgraphNode sim_graph_add(CUgraph graph, CUgraphNodeType type);
CUgraphNode sim_graph_add_allocation(CUgraph graph, int device, uint64_t bytes);
CUresult sim_graph_launch(CUgraph graph, CUstream stream, bool auto_free);

bool sim_graph_node_is_live(const struct sim_range *range);
void sim_graph_free_node(struct sim_range *range);
void sim_graphs_give_back(int device);
uint64_t sim_graph_bytes(int device);
uint64_t sim_graph_high_bytes(int device);
void sim_graph_reset_high(int device);

#endif
