// The CUDA driver as a table of functions, loaded at run time: nothing links to CUDA.
#pragma once

#include <cstddef>
#include <string>

#include "livepool/backend/cuda_types.h"

namespace livepool {

// Every driver function that livepool calls, once: X(member, symbol, parameters). Where the driver has
// several versions of a function, the symbol names the one whose parameters these are.
// Members drop the prefix "cu" because <cuda.h> makes macros of several full names.
// The last two serve tests and diagnostics only.
#define LIVEPOOL_CUDA_DRIVER_FUNCTIONS(X)                                                                      \
  X(Init, "cuInit", (unsigned int flags))                                                                      \
  X(GetErrorString, "cuGetErrorString", (cuda::Result error, const char** text))                               \
  X(DeviceGet, "cuDeviceGet", (cuda::Device * device, int ordinal))                                            \
  X(DeviceGetAttribute, "cuDeviceGetAttribute", (int* value, int attribute, cuda::Device device))              \
  X(PrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (cuda::Context * context, cuda::Device device))              \
  X(PrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (cuda::Device device))                                  \
  X(CtxPushCurrent, "cuCtxPushCurrent_v2", (cuda::Context context))                                            \
  X(CtxPopCurrent, "cuCtxPopCurrent_v2", (cuda::Context * context))                                            \
  X(MemGetInfo, "cuMemGetInfo_v2", (std::size_t * free, std::size_t * total))                                  \
  X(MemGetAllocationGranularity, "cuMemGetAllocationGranularity",                                              \
    (std::size_t * granularity, const cuda::AllocationProp* prop, int option))                                 \
  X(MemAddressReserve, "cuMemAddressReserve",                                                                  \
    (cuda::DevicePtr * address, std::size_t size, std::size_t alignment, cuda::DevicePtr hint,                 \
     unsigned long long flags))                                                                                \
  X(MemCreate, "cuMemCreate",                                                                                  \
    (cuda::PageHandle * handle, std::size_t size, const cuda::AllocationProp* prop, unsigned long long flags)) \
  X(MemMap, "cuMemMap",                                                                                        \
    (cuda::DevicePtr address, std::size_t size, std::size_t offset, cuda::PageHandle handle,                   \
     unsigned long long flags))                                                                                \
  X(MemSetAccess, "cuMemSetAccess",                                                                            \
    (cuda::DevicePtr address, std::size_t size, const cuda::AccessDesc* access, std::size_t count))            \
  X(MemUnmap, "cuMemUnmap", (cuda::DevicePtr address, std::size_t size))                                       \
  X(MemRelease, "cuMemRelease", (cuda::PageHandle handle))                                                     \
  X(MemsetD8Async, "cuMemsetD8Async",                                                                          \
    (cuda::DevicePtr address, unsigned char value, std::size_t count, cuda::Stream stream))                    \
  X(MemGetAccess, "cuMemGetAccess",                                                                            \
    (unsigned long long* flags, const cuda::Location* location, cuda::DevicePtr address))                      \
  X(MemcpyDtoH, "cuMemcpyDtoH_v2", (void* host, cuda::DevicePtr address, std::size_t count))

// The driver's functions; all are set. Tests pass a table of their own (tests/allocator/backend/fake_driver.h).
struct CudaDriver {
#define LIVEPOOL_DRIVER_MEMBER(member, symbol, parameters) cuda::Result(*member) parameters = nullptr;
  LIVEPOOL_CUDA_DRIVER_FUNCTIONS(LIVEPOOL_DRIVER_MEMBER)
#undef LIVEPOOL_DRIVER_MEMBER
};

// The driver of this machine, loaded and initialised at the first call and never unloaded.
// Null where there is none or it has no device; `why_not` (may be null) then says why. Thread-safe.
const CudaDriver* LoadCudaDriver(std::string* why_not);

// "out of memory (error 2)": the driver's text for `result`.
std::string DescribeResult(const CudaDriver& driver, cuda::Result result);

}  // namespace livepool
