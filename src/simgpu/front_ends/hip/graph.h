// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Graphs: work that is kept instead of done. A node holds what a stream would have been given; launching a graph gives
// a stream all of it, in an order that the dependencies allow.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "hip_abi/hip_abi.h"
#include "simgpu/front_ends/hip/stream.h"

namespace wavejit::simgpu::hip_front {

// Run as often as the graph is launched, each time the same: captures by value, changes nothing of its own.
using GraphWork = std::function<void()>;

struct GraphNode {
  hip_abi::hipGraphNodeType type = hip_abi::hipGraphNodeTypeEmpty;
  DeviceContext* context = nullptr;  // whose error ends the graph; null: nothing can fail
  std::shared_ptr<const GraphWork> work;
  std::vector<GraphNode*> dependencies;

  hip_abi::hipGraphNode_t handle() { return reinterpret_cast<hip_abi::hipGraphNode_t>(this); }
};

// What a node does: the same for those that are captured and those that are added by hand.
struct NodeWork {
  hip_abi::hipGraphNodeType type = hip_abi::hipGraphNodeTypeEmpty;
  DeviceContext* context = nullptr;
  GraphWork work;
};

// One lock for all graphs and captures: HIP's graphs are not safe from several threads at once, ours only have to
// survive.
std::mutex& graph_mutex();

// Under graph_mutex(), all of it.
class Graph {
 public:
  GraphNode& add(NodeWork work, std::vector<GraphNode*> dependencies);
  const std::vector<std::unique_ptr<GraphNode>>& nodes() const { return nodes_; }
  bool holds(const GraphNode* node) const;
  // Nodes that no other depends on.
  std::vector<GraphNode*> leaves() const;
  // Every node behind those it depends on; empty when there is a circle (or no node).
  std::vector<GraphNode*> order() const;

  hip_abi::hipGraph_t handle() { return reinterpret_cast<hip_abi::hipGraph_t>(this); }

 private:
  std::vector<std::unique_ptr<GraphNode>> nodes_;
};

// A graph becomes known to the program by its handle. Under graph_mutex().
void remember_graph(const std::shared_ptr<Graph>& graph);
void forget_graph(hip_abi::hipGraph_t handle);
// Null for a handle that is none.
std::shared_ptr<Graph> find_graph(hip_abi::hipGraph_t handle);

// Adds a node as the program asked; takes the lock itself. What HIP checks of every hipGraphAdd…Node is checked here.
hip_abi::hipError_t add_node(hip_abi::hipGraphNode_t* node, hip_abi::hipGraph_t graph,
                             const hip_abi::hipGraphNode_t* dependencies, std::size_t dependency_count, NodeWork work);

}  // namespace wavejit::simgpu::hip_front
