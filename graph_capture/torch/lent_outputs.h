// Outputs that stay in the arena, as tensors of the caller (Note [Loans] in livepool/pool/loan.h).
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <vector>

#include "livepool/base/env.h"
#include "livepool/pool/arena_pool.h"

namespace livepool {

// Note [Poisoned loans]
// What comes to lie where a loan has ended is mostly the next output of the same graph, so a tensor that is used too
// late shows good numbers. With Fill::kNan the caller therefore gets a copy, which turns into NaN when the loan ends.

// Lends what a pass has left in its arena. The calling thread holds the arena, and nothing is served any more.
class Lender {
 public:
  Lender(DeviceId device, PlannedArena& arena, Fill fill) : device_(device), arena_(arena), fill_(fill) {}

  // The outputs that own slots of the arena become loans; the others stay as they are.
  void Lend(const std::vector<at::Tensor>& outputs);
  // A storage, on loan, on bytes of the arena that no slot covers: those that a CUDA graph writes to. `bytes` does not
  // own them.
  c10::Storage LendLaunched(const c10::Storage& bytes);

 private:
  c10::DataPtr LendData(c10::DataPtr owner, Bytes size);
  c10::DataPtr Track(std::shared_ptr<Loan> loan, void* address, c10::Device device);

  const DeviceId device_;
  PlannedArena& arena_;
  const Fill fill_;
};

// Gives those of `tensors` that are on loan to the calling thread memory of their own, with the same bytes: the pass
// that is about to begin would end the loans. All tensors on their storages go along, and stay good for ever.
void MoveOutOfArena(const std::vector<at::Tensor>& tensors);

}  // namespace livepool
