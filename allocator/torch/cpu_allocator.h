// The c10::Allocator for the CPU: slots of the running pass, or upstream's memory.
#pragma once

#include <c10/core/Allocator.h>

#include "livepool/pool/arena_pool.h"

namespace livepool {

// Note [One deleter for every CPU DataPtr]
// oneDNN calls raw_allocate and raw_deallocate, so raw_deleter() may not be null, and c10 then requires that
// every DataPtr has that very deleter, with context == data. So slots and upstream's memory share one
// deleter, which tells them apart by address.
class CpuAllocator final : public c10::Allocator {
 public:
  // `upstream` serves what is not planned; it is immortal, as all of torch's allocators are, and has a raw deleter.
  CpuAllocator(c10::Allocator& upstream, ArenaPool& pool)
      : upstream_(upstream), free_(upstream.raw_deleter()), pool_(pool) {}

  // Throws c10::OutOfMemoryError.
  c10::DataPtr allocate(size_t size) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* dest, const void* src, std::size_t count) const override;

  ArenaPool& pool() const { return pool_; }

 private:
  friend void FreeCpu(void* address);
  c10::DataPtr FromUpstream(size_t size);

  c10::Allocator& upstream_;
  const c10::DeleterFnPtr free_;  // upstream's
  ArenaPool& pool_;
};

}  // namespace livepool
