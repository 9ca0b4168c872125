#include "livepool/backend/cuda_backend.h"

#include <cstdint>
#include <new>
#include <utility>

#include "livepool/backend/cuda_context.h"
#include "livepool/backend/granules.h"
#include "livepool/base/error.h"

namespace livepool {
namespace {

cuda::DevicePtr AsDevicePtr(const std::byte* address) { return reinterpret_cast<std::uintptr_t>(address); }

cuda::AllocationProp PageKind(int device) {
  cuda::AllocationProp prop;
  prop.location.id = device;
  return prop;
}

}  // namespace

CudaBackend::CudaBackend(const CudaDriver& driver, int device)
    : driver_(driver), device_(device), opened_(Open(driver, device)), pages_(opened_.granularity) {}

CudaBackend::Opened CudaBackend::Open(const CudaDriver& driver, int ordinal) {
  const auto require = [&](const char* call, cuda::Result result) {
    if (result == cuda::kSuccess) return;
    throw Error("cuda:" + std::to_string(ordinal) + ": " + call + ": " + DescribeResult(driver, result) +
                ". Check that the device exists and is visible to this process (CUDA_VISIBLE_DEVICES).");
  };
  cuda::Device device = 0;
  require("cuDeviceGet", driver.DeviceGet(&device, ordinal));
  int can_map = 0;
  require("cuDeviceGetAttribute", driver.DeviceGetAttribute(&can_map, cuda::kAttributeVirtualMemoryManagement, device));
  if (can_map == 0) {
    throw Error("cuda:" + std::to_string(ordinal) +
                ": the device has no virtual memory management, which an arena needs. Leave livepool off here.");
  }
  Opened opened;
  require("cuDevicePrimaryCtxRetain", driver.PrimaryCtxRetain(&opened.context, device));
  std::size_t granularity = 0;
  const cuda::Result result = [&] {
    const CurrentContext current(driver, opened.context);
    if (current.result() != cuda::kSuccess) return current.result();
    const cuda::AllocationProp prop = PageKind(ordinal);
    return driver.MemGetAllocationGranularity(&granularity, &prop, cuda::kGranularityRecommended);
  }();
  if (result != cuda::kSuccess) driver.PrimaryCtxRelease(device);
  require("cuMemGetAllocationGranularity", result);
  opened.granularity = static_cast<Bytes>(granularity);
  return opened;
}

std::byte* CudaBackend::Reserve(Bytes size) {
  const Bytes granule = opened_.granularity;
  const Bytes rounded = WholeGranules(size, granule);
  const CurrentContext current(driver_, opened_.context);
  cuda::DevicePtr address = 0;
  cuda::Result result = current.result();
  if (result == cuda::kSuccess) {
    result = driver_.MemAddressReserve(&address, static_cast<std::size_t>(rounded), static_cast<std::size_t>(granule),
                                       /*hint=*/0, /*flags=*/0);
  }
  if (result != cuda::kSuccess) {
    throw OutOfMemory(Name() + ": cannot reserve " + FormatBytes(size) + " of address space: cuMemAddressReserve: " +
                          DescribeResult(driver_, result) + ". Reserve less, or raise the limit (ulimit -v).",
                      size);
  }
  auto* const base = reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
  pages_.AddReservation(base, rounded);
  return base;
}

void CudaBackend::Map(std::byte* address, Bytes size) {
  const CurrentContext current(driver_, opened_.context);
  RetryReleases();
  const std::vector<std::byte*> missing = pages_.Missing(address, size);
  const auto granule = static_cast<std::size_t>(opened_.granularity);
  const cuda::AllocationProp prop = PageKind(device_);
  // Taken here, so that nothing throws between the first driver call and the last.
  std::vector<cuda::PageHandle> handles;
  handles.reserve(missing.size());
  std::size_t mapped = 0;

  const char* call = nullptr;
  cuda::Result result = cuda::kSuccess;
  const auto succeeds = [&](const char* name, cuda::Result outcome) {
    call = name;
    result = outcome;
    return outcome == cuda::kSuccess;
  };
  bool good = succeeds("cuCtxPushCurrent", current.result());
  while (good && handles.size() < missing.size()) {
    cuda::PageHandle handle = 0;
    good = succeeds("cuMemCreate", driver_.MemCreate(&handle, granule, &prop, /*flags=*/0));
    if (good) handles.push_back(handle);
  }
  while (good && mapped < missing.size()) {
    good = succeeds("cuMemMap", driver_.MemMap(AsDevicePtr(missing[mapped]), granule, /*offset=*/0, handles[mapped],
                                               /*flags=*/0));
    if (good) ++mapped;
  }
  if (good) {
    // The whole range: pages taken over from a refused Unmap may have lost their access.
    const cuda::AccessDesc access{.location = prop.location};
    good = succeeds("cuMemSetAccess",
                    driver_.MemSetAccess(AsDevicePtr(address), static_cast<std::size_t>(size), &access, 1));
  }

  // Recorded before the rollback: a page that cannot be unmapped again stays recorded.
  for (std::size_t i = 0; i < mapped; ++i) {
    pages_.Set(missing[i], opened_.granularity, true);
    if (!good) UnmapPage(missing[i]);
  }
  // Mapped or not: a mapping needs no handle, and a page without mapping is freed by this.
  for (const cuda::PageHandle handle : handles) Release(handle);
  if (!good) throw OutOfMemory(Describe(call, result, size), size);
}

void CudaBackend::Unmap(std::byte* address, Bytes size) noexcept {
  const CurrentContext current(driver_, opened_.context);
  if (driver_.MemUnmap(AsDevicePtr(address), static_cast<std::size_t>(size)) == cuda::kSuccess) {
    pages_.Set(address, size, false);
    return;
  }
  for (Bytes done = 0; done < size; done += opened_.granularity) UnmapPage(address + done);
}

void CudaBackend::UnmapPage(std::byte* page) noexcept {
  if (driver_.MemUnmap(AsDevicePtr(page), static_cast<std::size_t>(opened_.granularity)) != cuda::kSuccess) return;
  pages_.Set(page, opened_.granularity, false);
}

void CudaBackend::Release(cuda::PageHandle handle) noexcept {
  if (driver_.MemRelease(handle) == cuda::kSuccess) return;
  try {
    const std::lock_guard lock(unreleased_mutex_);
    unreleased_.push_back(handle);
  } catch (const std::bad_alloc&) {
    // Neither the driver nor the host has anything left to give: the page stays with the process.
  }
}

void CudaBackend::RetryReleases() noexcept {
  std::vector<cuda::PageHandle> handles;
  {
    const std::lock_guard lock(unreleased_mutex_);
    handles.swap(unreleased_);
  }
  for (const cuda::PageHandle handle : handles) Release(handle);
}

void CudaBackend::Fill(std::byte* address, Bytes size, std::byte value, StreamHandle stream) noexcept {
  const CurrentContext current(driver_, opened_.context);
  if (current.result() != cuda::kSuccess) return;  // the caller's context may be another device's
  driver_.MemsetD8Async(AsDevicePtr(address), std::to_integer<unsigned char>(value), static_cast<std::size_t>(size),
                        stream);
}

std::string CudaBackend::Describe(const char* call, cuda::Result result, Bytes size) const {
  std::size_t free = 0;
  std::size_t total = 0;
  const CurrentContext current(driver_, opened_.context);
  const bool known = current.result() == cuda::kSuccess && driver_.MemGetInfo(&free, &total) == cuda::kSuccess;
  const std::string state =
      known ? FormatBytes(static_cast<Bytes>(free)) + " of " + FormatBytes(static_cast<Bytes>(total)) + " are free"
            : "its free memory is unknown";
  return Name() + ": no memory for " + FormatBytes(size) + ": " + call + ": " + DescribeResult(driver_, result) + "; " +
         state + ". Drop tensors or cached memory on the device, or run smaller batches.";
}

}  // namespace livepool
