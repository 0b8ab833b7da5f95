// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Walks a schedule: matrix instructions in order, each with its fragment read from LDS some fragments before, whatever
// product it belongs to, and the vector queue behind them as the ladder says.
#pragma once

#include <functional>
#include <vector>

#include "codegen/language/fragment.h"
#include "codegen/language/strand.h"
#include "templates/attention_backward/emit/schedule.h"
#include "templates/attention_backward/kernel/ladders.h"

namespace wavejit::attention_backward {

// A fragment and the matrix instructions that take it.
struct Multiplication {
  std::function<language::OperandA(int buffer)> read;
  std::vector<std::function<void(const language::OperandA&)>> instructions;
  // Which fragment of what the queue makes they take, and whether it is made; nothing: none.
  int made = 0;
  std::function<bool()> is_made;
};

// What a kernel makes of a table's acts.
class Weaver {
 public:
  Weaver() = default;
  Weaver(const Weaver&) = delete;
  Weaver& operator=(const Weaver&) = delete;
  virtual ~Weaver() = default;

  virtual std::vector<Multiplication> multiplications(const schedule::Multiply& multiply) = 0;
  // Before the first of its fragments is asked for.
  virtual void prepare(const schedule::Multiply& multiply) = 0;
  // Before the first that takes a fragment of the queue's, and before the first of a product that takes none.
  virtual void begin(const schedule::Multiply& multiply) = 0;
  // Called after the last product.
  virtual void end(const schedule::Multiply& multiply) = 0;
  virtual void modify(const schedule::Modify& modify) = 0;
  virtual language::Strand strand(const schedule::Queue& queue) = 0;

  // The next tile: its way into LDS or registers, which begins with this one, and what is left to do of it before its
  // rows are read; and what is left of this one before its columns are.
  virtual language::Strand fetch() = 0;
  virtual language::Strand receive() = 0;
  virtual language::Strand receive_columns() = 0;
  // After this everybody may read what everybody has received, and nothing that was read so far is read again.
  virtual void turn() = 0;
};

// Where a tile stands, and the next one. Alike where there is one buffer with an image of the rows and one of the
// columns: the next tile's rows are written while this one's columns are read, and then its columns while its rows are.
struct Buffers {
  int own = 0;
  int next = 0;
  bool alternate() const { return own == next; }
};

using Fragments = std::vector<language::OperandA>;

// Emits one tile. `ahead`: its operands that were read before; returns those of the next tile that are read here.
Fragments weave(Weaver& weaver, const schedule::Schedule& schedule, const Ladder& ladder, const Buffers& buffers,
                const Fragments& ahead);
// Reads of the first tile what weave would have read ahead.
Fragments read_first(Weaver& weaver, const schedule::Schedule& schedule, const Ladder& ladder, int buffer);

}  // namespace wavejit::attention_backward
