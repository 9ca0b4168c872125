// The memory of one device's arenas, as the rest of torch must see it: in statistics, limits and peers.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "c10_compat.h"
#include "cuda_memory_limit.h"
#include "cuda_stats.h"
#include "livepool/backend/cuda_backend.h"

namespace livepool {

// A CudaBackend, plus what mapping memory means to its surroundings:
//  - statistics change (CudaStats);
//  - limits hold for upstream and arenas together (MemoryLimit): a mapping that would break one is refused;
//  - devices that may read this one's memory (peer access) get access to the new memory too;
//  - nothing is unmapped before the device has stopped using it: the driver does not wait.
class ArenaMemory final : public Backend {
 public:
  // What the memory needs to know of its device.
  struct Device {
    // Blocks until the device no longer uses the arena at an address. Throws nothing.
    std::function<void(const std::byte*)> wait_idle;
    // False while memory may not be unmapped.
    std::function<bool()> may_unmap;
  };

  ArenaMemory(const CudaDriver& driver, c10::DeviceIndex device, CudaStats& stats, MemoryLimit& limit, Device about);

  std::string Name() const override { return inner_.Name(); }
  Bytes Granularity() const override { return inner_.Granularity(); }
  Bytes Alignment() const override { return inner_.Alignment(); }
  std::byte* Reserve(Bytes size) override;
  void Map(std::byte* address, Bytes size) override;
  void Unmap(std::byte* address, Bytes size) noexcept override;
  bool MayUnmap() const override { return about_.may_unmap(); }
  void Fill(std::byte* address, Bytes size, std::byte value, StreamHandle stream) noexcept override {
    inner_.Fill(address, size, value, stream);
  }

  // Kernels on device `peer` may use this device's memory from now on.
  void AllowPeer(int peer);

 private:
  // The mapped part of one arena.
  struct Range {
    std::byte* base = nullptr;
    Bytes mapped = 0;
  };
  void GiveAccessLocked(std::byte* address, Bytes size, int peer) const;
  void CountLocked(const std::byte* address, Bytes change);

  const CudaDriver& driver_;
  CudaBackend inner_;
  CudaStats& stats_;
  MemoryLimit& limit_;
  const Device about_;
  const cuda::Context context_;
  std::mutex mutex_;
  std::vector<Range> ranges_;  // one for each arena
  Bytes mapped_ = 0;           // their sum
  std::vector<int> peers_;
};

}  // namespace livepool
