// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/hip/graph.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "hip_abi/hip_functions.h"
#include "simgpu/front_ends/hip/capture.h"
#include "simgpu/front_ends/hip/front.h"

namespace wavejit::simgpu::hip_front {

using namespace hip_abi;

namespace {

// A graph made ready to launch: independent of the graph that it was made from. Launches of one executable never
// overlap.
struct Executable {
  struct Step {
    DeviceContext* context = nullptr;
    std::shared_ptr<const GraphWork> work;
  };
  std::shared_ptr<const std::vector<Step>> steps;
  std::shared_ptr<Stream> last_stream;
  Stream::Ticket last_ticket = 0;
};

// Never destroyed, as the registry of streams. Under graph_mutex().
struct Graphs {
  std::unordered_map<hipGraph_t, std::shared_ptr<Graph>> graphs;
  std::unordered_map<hipGraphExec_t, std::shared_ptr<Executable>> executables;
};
Graphs& known() {
  static auto* instance = new Graphs;
  return *instance;
}

void run_steps(const std::vector<Executable::Step>& steps) {
  for (const Executable::Step& step : steps) {
    if (step.context != nullptr && step.context->error() != hipSuccess) return;
    if (step.work != nullptr && *step.work) (*step.work)();
  }
}

GraphNode* node_of(hipGraphNode_t handle) { return reinterpret_cast<GraphNode*>(handle); }

// The graph that a node belongs to; null for a handle that is none.
std::shared_ptr<Graph> graph_of(hipGraphNode_t handle) {
  for (const auto& [key, graph] : known().graphs)
    if (graph->holds(node_of(handle))) return graph;
  return nullptr;
}

// HIP's way of handing out lists: without a place for them only their number; with one as many as fit, the rest null.
template <typename Nodes>
void hand_out(const Nodes& nodes, hipGraphNode_t* to, std::size_t* count) {
  if (to == nullptr) {
    *count = nodes.size();
    return;
  }
  for (std::size_t i = 0; i < *count; ++i) to[i] = i < nodes.size() ? nodes[i]->handle() : nullptr;
  *count = std::min(*count, nodes.size());
}

hipError_t instantiate(hipGraphExec_t* handle, hipGraph_t graph_handle) {
  if (handle == nullptr) return hipErrorInvalidValue;
  const std::scoped_lock lock(graph_mutex());
  const auto graph = find_graph(graph_handle);
  if (graph == nullptr) return hipErrorInvalidValue;
  const std::vector<GraphNode*> order = graph->order();
  if (order.size() != graph->nodes().size()) return hipErrorInvalidValue;  // a circle
  std::vector<Executable::Step> steps;
  steps.reserve(order.size());
  for (const GraphNode* node : order) steps.push_back({node->context, node->work});
  auto executable = std::make_shared<Executable>();
  executable->steps = std::make_shared<const std::vector<Executable::Step>>(std::move(steps));
  *handle = reinterpret_cast<hipGraphExec_t>(executable.get());
  known().executables.emplace(*handle, std::move(executable));
  return hipSuccess;
}

hipError_t launch(hipGraphExec_t handle, hipStream_t stream_handle) {
  const auto stream = find_stream(stream_handle);
  if (stream == nullptr) return current_context() == nullptr ? hipErrorNoDevice : hipErrorContextIsDestroyed;
  std::shared_ptr<Executable> executable;
  {
    const std::scoped_lock lock(graph_mutex());
    const auto found = known().executables.find(handle);
    if (found == known().executables.end()) return hipErrorInvalidValue;
    executable = found->second;
  }
  DeviceContext& context = stream->context();
  if (context.error() != hipSuccess) return context.error();
  GraphWork work = [steps = executable->steps] { run_steps(*steps); };
  if (const auto captured = capture_work(stream, {hipGraphNodeTypeGraph, &context, work})) return *captured;
  // One lock over looking at the last launch and replacing it.
  const std::scoped_lock lock(graph_mutex());
  std::vector<Stream::Dependency> before;
  if (executable->last_stream != nullptr && executable->last_stream != stream)
    before.push_back({executable->last_stream, executable->last_ticket});
  executable->last_ticket = context.submit(stream, std::move(work), Stream::AfterError::skip, std::move(before));
  executable->last_stream = stream;
  return hipSuccess;
}

}  // namespace

std::mutex& graph_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}

GraphNode& Graph::add(NodeWork work, std::vector<GraphNode*> dependencies) {
  auto node = std::make_unique<GraphNode>();
  node->type = work.type;
  node->context = work.context;
  node->work = std::make_shared<const GraphWork>(std::move(work.work));
  node->dependencies = std::move(dependencies);
  nodes_.push_back(std::move(node));
  return *nodes_.back();
}

bool Graph::holds(const GraphNode* node) const {
  return std::ranges::any_of(nodes_, [&](const auto& one) { return one.get() == node; });
}

std::vector<GraphNode*> Graph::leaves() const {
  std::vector<GraphNode*> found;
  for (const auto& node : nodes_) {
    const bool needed = std::ranges::any_of(nodes_, [&](const auto& other) {
      return std::ranges::find(other->dependencies, node.get()) != other->dependencies.end();
    });
    if (!needed) found.push_back(node.get());
  }
  return found;
}

std::vector<GraphNode*> Graph::order() const {
  std::unordered_map<const GraphNode*, std::size_t> missing;
  std::unordered_map<const GraphNode*, std::vector<GraphNode*>> dependents;
  std::vector<GraphNode*> ready;
  for (const auto& node : nodes_) {
    missing[node.get()] = node->dependencies.size();
    if (node->dependencies.empty()) ready.push_back(node.get());
    for (const GraphNode* dependency : node->dependencies) dependents[dependency].push_back(node.get());
  }
  for (std::size_t i = 0; i < ready.size(); ++i) {
    for (GraphNode* next : dependents[ready[i]])
      if (--missing[next] == 0) ready.push_back(next);
  }
  return ready.size() == nodes_.size() ? ready : std::vector<GraphNode*>{};
}

void remember_graph(const std::shared_ptr<Graph>& graph) { known().graphs.emplace(graph->handle(), graph); }
void forget_graph(hipGraph_t handle) { known().graphs.erase(handle); }
std::shared_ptr<Graph> find_graph(hipGraph_t handle) {
  const auto found = known().graphs.find(handle);
  return found == known().graphs.end() ? nullptr : found->second;
}

hipError_t add_node(hipGraphNode_t* node, hipGraph_t handle, const hipGraphNode_t* dependencies,
                    std::size_t dependency_count, NodeWork work) {
  if (node == nullptr || (dependency_count > 0 && dependencies == nullptr)) return hipErrorInvalidValue;
  const std::scoped_lock lock(graph_mutex());
  const auto graph = find_graph(handle);
  if (graph == nullptr) return hipErrorInvalidValue;
  std::vector<GraphNode*> before;
  for (std::size_t i = 0; i < dependency_count; ++i) {
    GraphNode* dependency = node_of(dependencies[i]);
    const bool twice = std::ranges::find(before, dependency) != before.end();
    if (twice || !graph->holds(dependency)) return hipErrorInvalidValue;
    before.push_back(dependency);
  }
  *node = graph->add(std::move(work), std::move(before)).handle();
  return hipSuccess;
}

}  // namespace wavejit::simgpu::hip_front

namespace wavejit::hip_abi {

using namespace simgpu::hip_front;

hipError_t hipGraphCreate(hipGraph_t* handle, unsigned flags) {
  if (handle == nullptr || flags != 0) return finish(hipErrorInvalidValue);
  const auto graph = std::make_shared<Graph>();
  const std::scoped_lock lock(graph_mutex());
  remember_graph(graph);
  *handle = graph->handle();
  return finish(hipSuccess);
}

hipError_t hipGraphDestroy(hipGraph_t handle) {
  if (handle == nullptr) return finish(hipErrorInvalidValue);
  const std::scoped_lock lock(graph_mutex());
  if (find_graph(handle) == nullptr) return finish(hipErrorIllegalState);
  forget_graph(handle);
  return finish(hipSuccess);
}

hipError_t hipGraphGetNodes(hipGraph_t handle, hipGraphNode_t* nodes, std::size_t* count) {
  const std::scoped_lock lock(graph_mutex());
  const auto graph = find_graph(handle);
  if (graph == nullptr || count == nullptr) return finish(hipErrorInvalidValue);
  hand_out(graph->nodes(), nodes, count);
  return finish(hipSuccess);
}

hipError_t hipGraphGetRootNodes(hipGraph_t handle, hipGraphNode_t* nodes, std::size_t* count) {
  const std::scoped_lock lock(graph_mutex());
  const auto graph = find_graph(handle);
  if (graph == nullptr || count == nullptr) return finish(hipErrorInvalidValue);
  std::vector<GraphNode*> roots;
  for (const auto& node : graph->nodes())
    if (node->dependencies.empty()) roots.push_back(node.get());
  hand_out(roots, nodes, count);
  return finish(hipSuccess);
}

hipError_t hipGraphAddDependencies(hipGraph_t handle, const hipGraphNode_t* from, const hipGraphNode_t* to,
                                   std::size_t count) {
  const std::scoped_lock lock(graph_mutex());
  const auto graph = find_graph(handle);
  if (graph == nullptr) return finish(hipErrorInvalidValue);
  if (count == 0) return finish(hipSuccess);
  if (from == nullptr || to == nullptr) return finish(hipErrorInvalidValue);
  for (std::size_t i = 0; i < count; ++i) {
    GraphNode* before = node_of(from[i]);
    GraphNode* after = node_of(to[i]);
    if (before == after || !graph->holds(before) || !graph->holds(after)) return finish(hipErrorInvalidValue);
    if (std::ranges::find(after->dependencies, before) != after->dependencies.end())
      return finish(hipErrorInvalidValue);
    after->dependencies.push_back(before);
  }
  return finish(hipSuccess);
}

hipError_t hipGraphNodeGetType(hipGraphNode_t node, hipGraphNodeType* type) {
  const std::scoped_lock lock(graph_mutex());
  if (type == nullptr || graph_of(node) == nullptr) return finish(hipErrorInvalidValue);
  *type = node_of(node)->type;
  return finish(hipSuccess);
}

hipError_t hipGraphNodeGetDependencies(hipGraphNode_t node, hipGraphNode_t* dependencies, std::size_t* count) {
  const std::scoped_lock lock(graph_mutex());
  if (count == nullptr || graph_of(node) == nullptr) return finish(hipErrorInvalidValue);
  hand_out(node_of(node)->dependencies, dependencies, count);
  return finish(hipSuccess);
}

hipError_t hipGraphAddEmptyNode(hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* dependencies,
                                std::size_t dependency_count) {
  return finish(add_node(node, graph, dependencies, dependency_count, {}));
}

hipError_t hipGraphAddHostNode(hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* dependencies,
                               std::size_t dependency_count, const hipHostNodeParams* parameters) {
  if (parameters == nullptr || parameters->fn == nullptr) return finish(hipErrorInvalidValue);
  return finish(add_node(node, graph, dependencies, dependency_count,
                         {hipGraphNodeTypeHost, nullptr, [host = *parameters] { host.fn(host.userData); }}));
}

hipError_t hipGraphInstantiate(hipGraphExec_t* executable, hipGraph_t graph, hipGraphNode_t* error_node, char* log,
                               std::size_t log_bytes) {
  if (error_node != nullptr) *error_node = nullptr;
  if (log != nullptr && log_bytes > 0) *log = 0;
  return finish(instantiate(executable, graph));
}

hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t* executable, hipGraph_t graph, unsigned long long flags) {
  const bool known_flags =
      flags == 0 || flags == hipGraphInstantiateFlagAutoFreeOnLaunch || flags == hipGraphInstantiateFlagUseNodePriority;
  return finish(known_flags ? instantiate(executable, graph) : hipErrorInvalidValue);
}

hipError_t hipGraphExecDestroy(hipGraphExec_t executable) {
  const std::scoped_lock lock(graph_mutex());
  return finish(known().executables.erase(executable) != 0 ? hipSuccess : hipErrorInvalidValue);
}

// Nothing is resident anywhere: there is nothing to do ahead of a launch.
hipError_t hipGraphUpload(hipGraphExec_t executable, hipStream_t stream) {
  if (find_stream(stream) == nullptr) return finish(hipErrorContextIsDestroyed);
  const std::scoped_lock lock(graph_mutex());
  return finish(known().executables.contains(executable) ? hipSuccess : hipErrorInvalidValue);
}

hipError_t hipGraphLaunch(hipGraphExec_t executable, hipStream_t stream) { return finish(launch(executable, stream)); }

}  // namespace wavejit::hip_abi
