/*
 * Kernel nodes of graphs.  A kernel that was not loaded yet is loaded when a
 * node is given it, so these find no room on a full device as launches do.
 */
#include "watched.h"

WATCHED(cuGraphAddKernelNode,
        (CUgraphNode * phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
         size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams),
        (phGraphNode, hGraph, dependencies, numDependencies, nodeParams))

WATCHED(cuGraphAddKernelNode_v2,
        (CUgraphNode * phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
         size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS *nodeParams),
        (phGraphNode, hGraph, dependencies, numDependencies, nodeParams))

WATCHED(cuGraphKernelNodeSetParams,
        (CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams), (hNode, nodeParams))

WATCHED(cuGraphKernelNodeSetParams_v2,
        (CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams), (hNode, nodeParams))

WATCHED(cuGraphExecKernelNodeSetParams,
        (CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams),
        (hGraphExec, hNode, nodeParams))

WATCHED(cuGraphExecKernelNodeSetParams_v2,
        (CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams),
        (hGraphExec, hNode, nodeParams))

WATCHED(cuGraphNodeSetParams, (CUgraphNode hNode, CUgraphNodeParams *nodeParams),
        (hNode, nodeParams))

WATCHED(cuGraphExecNodeSetParams,
        (CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams *nodeParams),
        (hGraphExec, hNode, nodeParams))

WATCHED(cuGraphNodeSetParams_v2, (CUgraphNode hNode, CUgraphNodeParams *nodeParams),
        (hNode, nodeParams))
