// Puts livepool's allocators in the place of PyTorch's own.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "livepool/pool/arena_pool.h"

namespace livepool {

// Installs the allocator for one kind of device, once; later calls do nothing. Everything that is not
// planned goes to the allocator that was installed before ("upstream"), so nothing changes until a plan is
// served. Not thread-safe with respect to allocations: call it before other threads run.
// Throws UnsupportedTorch if the torch in this process is not the release that this library was built for,
// or Error if the device kind is not available in this build.
void Install(DeviceId::Kind kind);

// True once Install(kind) has returned, and the allocator is (still) the one that torch uses.
bool Installed(DeviceId::Kind kind);

// The arenas of `device`. Throws NotInstalled before Install.
ArenaPool& PoolOf(DeviceId device);

// The arenas of every installed device that has been used.
std::vector<ArenaPool*> AllPools();

// Bytes that PyTorch's own CUDA allocator (what it has reserved) and livepool's arenas may hold together, on each
// CUDA device; none: no limit. LIVEPOOL_MEMORY_LIMIT sets it at the start. An arena that would exceed it is refused
// after idle arenas and PyTorch's cache were given back; the pass then runs on PyTorch's memory, which the limit holds
// for too (torch.OutOfMemoryError). May be called before Install. Throws InvalidInput for a negative number, Error in
// a build without CUDA.
void SetMemoryLimit(std::optional<Bytes> bytes);
std::optional<Bytes> MemoryLimitBytes();

// Gives the memory of idle arenas back to the devices; returns the bytes. Throws ArenaInUse, and frees nothing, where a
// pass runs, a CUDA graph over an arena lives, or one is being captured.
Bytes TrimArenas();

// Throws UnsupportedTorch unless the running torch has the major.minor version of the headers that this
// library was compiled with: the allocator's vtable moves nearly every minor release.
void CheckTorchVersion();

namespace detail {
// The same for two versions as torch packs them: major, minor, patch and five bytes more, highest first.
void CheckTorchVersion(std::uint64_t running, std::uint64_t built);

// One for each device kind, in its own file; called by Install
void InstallCpu();
ArenaPool& CpuPool();
bool CpuInstalled();
void InstallCuda();
ArenaPool& CudaPool(int index);
std::vector<ArenaPool*> CudaPools();
bool CudaInstalled();
void SetCudaMemoryLimit(std::optional<Bytes> bytes);
std::optional<Bytes> CudaMemoryLimit();
}  // namespace detail

}  // namespace livepool
