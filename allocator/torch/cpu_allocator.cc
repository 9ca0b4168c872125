#include "cpu_allocator.h"

#include <c10/util/Exception.h>

#include <cstring>

#include "livepool/backend/host_backend.h"
#include "livepool/base/error.h"
#include "livepool/pool/pass.h"
#include "livepool/torch/install.h"

namespace livepool {
namespace {

constexpr DeviceId kHost{DeviceId::Kind::kHost, 0};

// Set once by InstallCpu and never destroyed: deleters need it for the life of the process.
CpuAllocator* installed = nullptr;

// Address space for each arena: more than any plan, and far below what the kernel allows.
constexpr Bytes kReserve = 256_GiB;

}  // namespace

void FreeCpu(void* address) {
  if (address == nullptr) return;
  if (PlannedArena* arena = installed->pool_.Find(address)) {
    arena->Free(address);
    return;
  }
  if (TraceSink* sink = CurrentThread().sink) sink->OnFree(kHost, address);
  installed->upstream_.raw_deleter()(address);
}

c10::DataPtr CpuAllocator::allocate(size_t size) {
  void* address = nullptr;
  if (size > 0) {
    const ThreadState& thread = CurrentThread();
    if (thread.pass != nullptr && thread.pass->device() == kHost) {
      address = thread.pass->Serve(static_cast<Bytes>(size), nullptr, __builtin_frame_address(0));
    }
    if (address == nullptr) {
      address = upstream_.raw_allocate(size);
      if (thread.sink != nullptr) thread.sink->OnAlloc(kHost, address, static_cast<Bytes>(size), nullptr);
    }
  }
  return {address, address, &FreeCpu, c10::Device(c10::kCPU)};
}

c10::DeleterFnPtr CpuAllocator::raw_deleter() const { return &FreeCpu; }

void CpuAllocator::copy_data(void* dest, const void* src, std::size_t count) const { std::memcpy(dest, src, count); }

namespace detail {

void InstallCpu() {
  if (installed != nullptr) return;
  c10::Allocator* upstream = c10::GetAllocator(c10::kCPU);
  // Without a raw deleter upstream's memory could not be freed by address (see the note in the header).
  if (upstream->raw_deleter() == nullptr) {
    throw Error("livepool: the CPU allocator in use has no raw_deleter(); install livepool before it");
  }
  auto* pool = new ArenaPool(kHost, std::make_unique<HostBackend>(), kReserve);
  installed = new CpuAllocator(*upstream, *pool);
  c10::SetAllocator(c10::kCPU, installed, /*priority=*/255);
}

ArenaPool& CpuPool() { return installed->pool(); }
bool CpuInstalled() { return installed != nullptr && c10::GetAllocator(c10::kCPU) == installed; }

}  // namespace detail
}  // namespace livepool
