// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// As many launches as there are nodes, each of which reads what the one before wrote: shortest ways over one node more.
#include "timed.h"

__global__ void over(unsigned* ways, unsigned* last, unsigned nodes, unsigned node) {
  const unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  const unsigned way = ways[y * nodes + node] + ways[node * nodes + x];
  if (way < ways[y * nodes + x]) {
    ways[y * nodes + x] = way;
    last[y * nodes + x] = node;
  }
}

int main(int count, char** words) {
  return silicon::each_size(count, words, [](const std::string&, const silicon::Numbers& numbers) {
    const unsigned nodes = numbers[0];
    silicon::Array<unsigned> ways(nodes * nodes), last(nodes * nodes);
    return silicon::microseconds([&] {
      for (unsigned node = 0; node < nodes; ++node)
        over<<<dim3(nodes / 8, nodes / 8), dim3(8, 8)>>>(ways, last, nodes, node);
    });
  });
}
