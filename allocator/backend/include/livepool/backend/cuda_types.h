// The types and constants of the CUDA driver API that livepool uses, binary compatible with <cuda.h>.
//
// livepool::core is built on machines without the CUDA toolkit, so it cannot include <cuda.h>. The driver
// API is a stable C interface; layouts and values below are those of the "CUDA Driver API" reference
// (docs.nvidia.com/cuda/cuda-driver-api, modules "Data types used by CUDA driver" and "Virtual Memory
// Management"). tests/allocator/backend/cuda_types_test.cc compares them with <cuda.h> where there is one.
#pragma once

#include <cstddef>

namespace livepool::cuda {

using Result = int;                     // CUresult
using Device = int;                     // CUdevice
using DevicePtr = unsigned long long;   // CUdeviceptr
using PageHandle = unsigned long long;  // CUmemGenericAllocationHandle
using Context = void*;                  // CUcontext
using Stream = void*;                   // CUstream

inline constexpr Result kSuccess = 0;
inline constexpr Result kInvalidValue = 1;
inline constexpr Result kOutOfMemory = 2;
inline constexpr Result kNotInitialized = 3;  // also what a forked child gets
inline constexpr Result kDeinitialized = 4;   // the process is exiting
inline constexpr Result kInvalidDevice = 101;
inline constexpr Result kInvalidContext = 201;

inline constexpr int kAttributeVirtualMemoryManagement = 102;  // CU_DEVICE_ATTRIBUTE_…_SUPPORTED
inline constexpr int kAllocationTypePinned = 1;                // CU_MEM_ALLOCATION_TYPE_PINNED
inline constexpr int kLocationTypeDevice = 1;                  // CU_MEM_LOCATION_TYPE_DEVICE
inline constexpr int kAccessReadWrite = 3;                     // CU_MEM_ACCESS_FLAGS_PROT_READWRITE
inline constexpr int kGranularityRecommended = 1;              // CU_MEM_ALLOC_GRANULARITY_RECOMMENDED

// CUmemLocation: which device.
struct Location {
  int type = kLocationTypeDevice;
  int id = 0;
};

// CUmemAllocationProp: what kind of physical memory, and where.
struct AllocationProp {
  int type = kAllocationTypePinned;
  int requested_handle_types = 0;
  Location location;
  void* win32_handle_metadata = nullptr;
  struct {
    unsigned char compression_type = 0;
    unsigned char gpu_direct_rdma_capable = 0;
    unsigned short usage = 0;
    unsigned char reserved[4] = {};
  } flags;
};

// CUmemAccessDesc: who may do what.
struct AccessDesc {
  Location location;
  int flags = kAccessReadWrite;
};

static_assert(sizeof(Location) == 8);
static_assert(sizeof(AccessDesc) == 12);
static_assert(offsetof(AllocationProp, location) == 8);
static_assert(offsetof(AllocationProp, win32_handle_metadata) == 16);
static_assert(offsetof(AllocationProp, flags) == 24 && sizeof(AllocationProp) == 32);

}  // namespace livepool::cuda
