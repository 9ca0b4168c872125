// Memory of one CUDA device, through the driver's virtual memory management.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "livepool/backend/backend.h"
#include "livepool/backend/cuda_driver.h"
#include "livepool/backend/page_map.h"

namespace livepool {

// Physical memory comes in pages of one granule (2 MiB), each its own driver allocation, because the
// driver unmaps only what was mapped as one, and Unmap takes any range. The price is one cuMemCreate and
// one cuMemMap for each page, tens of microseconds together: some milliseconds for 150 MiB, about half a
// second for 40 GiB, paid once when an arena grows. Access is set once for the whole range.
// A page's handle is released as soon as it is mapped: the mapping alone keeps the memory, and Unmap frees it.
//
// Failures of the driver leave nothing behind:
//  - Map creates every page before it maps the first. When memory runs short, which is how it fails in
//    practice, only handles are released and nothing is unmapped, as is required while a stream captures.
//  - A page that the driver refuses to unmap is remembered, and the next Map of its address takes it over.
//  - A handle that the driver refuses to release is released by a later Map.
//
// Destruction makes no driver call: the process may be exiting, and addresses may be in use. What is
// mapped, the reservations and the device's primary context stay with the process.
class CudaBackend final : public Backend {
 public:
  // `driver` must outlive the backend. Throws Error where the device does not exist or cannot map memory.
  CudaBackend(const CudaDriver& driver, int device);
  CudaBackend(const CudaBackend&) = delete;
  CudaBackend& operator=(const CudaBackend&) = delete;

  std::string Name() const override { return "cuda:" + std::to_string(device_); }
  Bytes Granularity() const override { return opened_.granularity; }
  Bytes Alignment() const override { return 512_B; }

  std::byte* Reserve(Bytes size) override;
  void Map(std::byte* address, Bytes size) override;
  // Silent when the driver refuses, as it does at process exit.
  void Unmap(std::byte* address, Bytes size) noexcept override;
  // Asynchronous, and silent when the driver refuses. Legal while `stream` captures.
  void Fill(std::byte* address, Bytes size, std::byte value, StreamHandle stream) noexcept override;

 private:
  struct Opened {
    cuda::Context context = nullptr;  // the primary context, which the CUDA runtime uses too
    Bytes granularity = 0;
  };
  static Opened Open(const CudaDriver& driver, int ordinal);

  void UnmapPage(std::byte* page) noexcept;
  void Release(cuda::PageHandle handle) noexcept;
  void RetryReleases() noexcept;
  // "cuda:0: no memory for 3.00 GiB: cuMemCreate: out of memory …" with the free memory of this moment.
  std::string Describe(const char* call, cuda::Result result, Bytes size) const;

  const CudaDriver& driver_;
  const int device_;
  const Opened opened_;
  PageMap pages_;
  std::mutex unreleased_mutex_;  // guards what follows; never held during a driver call
  std::vector<cuda::PageHandle> unreleased_;
};

}  // namespace livepool
