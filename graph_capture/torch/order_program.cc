#include "order_program.h"

#include "finish_program.h"
#include "livepool/graph/memory_order.h"

namespace livepool {

bool OrderForMemory(Program& program, Calibration& calibration, bool in_place, Bytes alignment) {
  const PassMemory pass{.graph = program.graph, .trace = calibration.trace, .storage_of = calibration.storage_of};
  const std::optional<OpOrder> order = FindMemoryOrder(pass, program.copying_ops, in_place, alignment);
  if (!order) return false;
  std::optional<PassMemory> moved = InOrder(pass, *order);
  std::vector<Instruction> code;
  code.reserve(order->size());
  for (const OpIndex op : *order) code.push_back(std::move(program.code[static_cast<std::size_t>(op)]));
  program.code = std::move(code);
  program.graph = std::move(moved->graph);
  calibration = {.trace = std::move(moved->trace), .storage_of = std::move(moved->storage_of)};
  FindDrops(program);
  return true;
}

}  // namespace livepool
