// The types of cuda_types.h against those of the CUDA toolkit, where it is installed.
#include "livepool/backend/cuda_types.h"

#include <gtest/gtest.h>

#include "livepool/backend/cuda_driver.h"

#if __has_include(<cuda.h>)
#include <cuda.h>
#endif

namespace livepool {
namespace {

TEST(CudaTypesTest, AgreeWithTheToolkit) {
#ifndef CUDA_VERSION
  GTEST_SKIP() << "no <cuda.h> on this machine to compare with";
#else
  static_assert(sizeof(CUresult) == sizeof(cuda::Result) && sizeof(CUdevice) == sizeof(cuda::Device));
  static_assert(sizeof(CUdeviceptr) == sizeof(cuda::DevicePtr) && sizeof(CUcontext) == sizeof(cuda::Context));
  static_assert(sizeof(CUmemGenericAllocationHandle) == sizeof(cuda::PageHandle));

  static_assert(sizeof(CUmemLocation) == sizeof(cuda::Location));
  static_assert(offsetof(CUmemLocation, id) == offsetof(cuda::Location, id));
  static_assert(sizeof(CUmemAccessDesc) == sizeof(cuda::AccessDesc));
  static_assert(offsetof(CUmemAccessDesc, flags) == offsetof(cuda::AccessDesc, flags));
  static_assert(sizeof(CUmemAllocationProp) == sizeof(cuda::AllocationProp));
  static_assert(offsetof(CUmemAllocationProp, location) == offsetof(cuda::AllocationProp, location));
  static_assert(offsetof(CUmemAllocationProp, allocFlags) == offsetof(cuda::AllocationProp, flags));

  static_assert(CUDA_SUCCESS == cuda::kSuccess && CUDA_ERROR_INVALID_VALUE == cuda::kInvalidValue);
  static_assert(CUDA_ERROR_OUT_OF_MEMORY == cuda::kOutOfMemory);
  static_assert(CUDA_ERROR_NOT_INITIALIZED == cuda::kNotInitialized);
  static_assert(CUDA_ERROR_DEINITIALIZED == cuda::kDeinitialized);
  static_assert(CUDA_ERROR_INVALID_DEVICE == cuda::kInvalidDevice);
  static_assert(CUDA_ERROR_INVALID_CONTEXT == cuda::kInvalidContext);
  static_assert(CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED == cuda::kAttributeVirtualMemoryManagement);
  static_assert(CU_MEM_ALLOCATION_TYPE_PINNED == cuda::kAllocationTypePinned);
  static_assert(CU_MEM_LOCATION_TYPE_DEVICE == cuda::kLocationTypeDevice);
  static_assert(CU_MEM_ACCESS_FLAGS_PROT_READWRITE == cuda::kAccessReadWrite);
  static_assert(CU_MEM_ALLOC_GRANULARITY_RECOMMENDED == cuda::kGranularityRecommended);
#endif
}

}  // namespace
}  // namespace livepool
