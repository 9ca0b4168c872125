// Host memory: pages of the process, reserved far ahead and made usable on demand.
#pragma once

#include "livepool/backend/backend.h"

namespace livepool {

// Reservations are inaccessible private mappings; Map makes a part of one readable and writable and asks
// for huge pages, without which a large arena costs a TLB miss and a page fault for every 4 KiB.
// The kernel provides a page at its first touch, so it lands on the NUMA node of the thread that uses it.
// It also means that Map refuses only what a limit forbids (ulimit -v, ulimit -d, strict overcommit);
// a machine that runs out of memory later behaves as it does for malloc.
// Holds no state: the kernel is the only bookkeeper. Ranges outlive the object.
class HostBackend final : public Backend {
 public:
  std::string Name() const override { return "host"; }
  // The size of a huge page, not of a page.
  Bytes Granularity() const override { return 2_MiB; }
  Bytes Alignment() const override { return 64_B; }

  std::byte* Reserve(Bytes size) override;
  void Map(std::byte* address, Bytes size) override;
  void Unmap(std::byte* address, Bytes size) noexcept override;
  // Host work has no streams: the bytes are written when Fill returns.
  void Fill(std::byte* address, Bytes size, std::byte value, StreamHandle stream) noexcept override;
};

}  // namespace livepool
