// The memory of one device's arenas, as the rest of torch must see it: in statistics, limits and peers.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "c10_compat.h"
#include "cuda_stats.h"
#include "livepool/backend/cuda_backend.h"

namespace livepool {

// A CudaBackend, plus what mapping memory means to its surroundings:
//  - statistics change (CudaStats);
//  - set_per_process_memory_fraction holds for upstream and arenas together: a mapping that would break it
//    is refused, and upstream's own limit is what is left;
//  - devices that may read this one's memory (peer access) get access to the new memory too;
//  - nothing is unmapped before the device has stopped using it: the driver does not wait.
class ArenaMemory final : public Backend {
 public:
  // The mapped part of one arena.
  struct Range {
    std::byte* base = nullptr;
    Bytes mapped = 0;
  };

  // `wait_idle` blocks until the device no longer uses the arena at an address; it may not throw.
  ArenaMemory(const CudaDriver& driver, c10::DeviceIndex device, c10_compat::CUDAAllocator& upstream, CudaStats& stats,
              std::function<void(const std::byte*)> wait_idle);

  std::string Name() const override { return inner_.Name(); }
  Bytes Granularity() const override { return inner_.Granularity(); }
  Bytes Alignment() const override { return inner_.Alignment(); }
  std::byte* Reserve(Bytes size) override;
  void Map(std::byte* address, Bytes size) override;
  void Unmap(std::byte* address, Bytes size) noexcept override;
  void Fill(std::byte* address, Bytes size, std::byte value, StreamHandle stream) noexcept override {
    inner_.Fill(address, size, value, stream);
  }

  std::vector<Range> Ranges() const;
  Bytes total() const { return total_; }

  // `fraction` of the device's memory for upstream and arenas together.
  void SetFraction(double fraction);
  // The last fraction set, if any.
  std::optional<double> fraction() const;
  // Kernels on device `peer` may use this device's memory from now on.
  void AllowPeer(int peer);

 private:
  void CheckLimitLocked(Bytes size) const;
  void ShareLimitLocked() const;
  void GiveAccessLocked(std::byte* address, Bytes size, int peer) const;
  void CountLocked(const std::byte* address, Bytes change);

  const CudaDriver& driver_;
  CudaBackend inner_;
  const c10::DeviceIndex device_;
  c10_compat::CUDAAllocator& upstream_;
  CudaStats& stats_;
  const std::function<void(const std::byte*)> wait_idle_;
  const cuda::Context context_;
  const Bytes total_;
  mutable std::mutex mutex_;
  std::vector<Range> ranges_;  // one for each arena
  std::vector<int> peers_;
  std::optional<double> fraction_;
};

}  // namespace livepool
