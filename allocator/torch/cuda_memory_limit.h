// How much memory of one device upstream and the arenas may hold together.
#pragma once

#include <mutex>
#include <optional>

#include "c10_compat.h"
#include "cuda_machine.h"
#include "livepool/base/units.h"

namespace livepool {

// Two limits, of which the lower one holds: set_per_process_memory_fraction, which is torch's, and livepool's own in
// bytes. Upstream knows nothing of the arenas, so its fraction is set to what they leave of the limit:
//     upstream's fraction * total = limit - mapped
// and the user reads back what the user has set. With no limit upstream's fraction is left alone.
// Thread-safe; upstream is called with the lock held, and calls nothing back.
class MemoryLimit {
 public:
  MemoryLimit(c10_compat::CUDAAllocator& upstream, const CudaMachine& machine, c10::DeviceIndex device)
      : upstream_(upstream), machine_(machine), device_(device) {}

  // torch's fraction. Set throws c10::Error outside of [0, 1], or before CUDA is initialised.
  double Fraction();
  void SetFraction(double fraction);
  // livepool's own limit; none: no limit. Before CUDA is initialised it is only noted, until Share is called.
  void SetBytes(std::optional<Bytes> bytes);
  // The arenas hold `mapped` bytes from now on.
  void SetMapped(Bytes mapped);
  // Tells upstream what is left for it.
  void Share();
  // Throws OutOfMemory if `more` bytes for an arena would break the limit.
  void Check(Bytes more);

 private:
  void NoteFractionLocked();
  std::optional<Bytes> LimitLocked();
  void ShareLocked();
  Bytes TotalLocked();

  c10_compat::CUDAAllocator& upstream_;
  const CudaMachine& machine_;
  const c10::DeviceIndex device_;
  std::mutex mutex_;
  std::optional<double> fraction_;  // the user's; none: not known yet
  std::optional<Bytes> bytes_;
  Bytes mapped_ = 0;
  Bytes total_ = 0;      // 0: not asked for yet
  bool shared_ = false;  // upstream's fraction is ours
};

}  // namespace livepool
