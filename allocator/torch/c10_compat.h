// The only file that knows torch releases: what of torch's allocator interface livepool builds on.
//
// CUDAAllocator gets new virtual functions in the middle nearly every minor release, so a library that was
// built for one release calls the wrong functions of another. Hence one release for each build, checked when
// compiling (here) and when installing (CheckTorchVersion). To support another release, read its
// CUDACachingAllocator.h and CachingDeviceAllocator.h against CudaAllocator, then change this file.
#pragma once

#include <torch/headeronly/version.h>

static_assert(TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR == 11,
              "livepool: this release is written for torch 2.11; install it, or a livepool for your torch");

#ifdef LIVEPOOL_HAVE_CUDA

#include <c10/cuda/CUDACachingAllocator.h>

namespace livepool::c10_compat {

namespace native = c10::cuda::CUDACachingAllocator;
namespace caching = c10::CachingDeviceAllocator;

using native::AllocatorState;
using native::AllocatorTraceTracker;
using native::CheckpointDelta;
using native::CreateContextFn;
using native::CUDAAllocator;
using native::DeviceStats;
using native::OutOfMemoryObserver;
using native::RecordContext;
using native::SegmentInfo;
using native::ShareableHandle;
using native::SnapshotInfo;
using native::StreamSegmentSize;
using native::TraceEntry;

using c10::MempoolId_t;
using c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatArray;
using c10::CachingAllocator::StatType;
using PoolFilter = std::function<bool(cudaStream_t)>;

}  // namespace livepool::c10_compat

#endif  // LIVEPOOL_HAVE_CUDA
