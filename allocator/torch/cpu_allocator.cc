#include "cpu_allocator.h"

#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <atomic>
#include <cstring>

#include "livepool/backend/host_backend.h"
#include "livepool/base/error.h"
#include "livepool/pool/free_watch.h"
#include "livepool/pool/pass.h"
#include "livepool/torch/eager_code.h"
#include "livepool/torch/install.h"

namespace livepool {
namespace {

constexpr DeviceId kHost{DeviceId::Kind::kHost, 0};

// Set once by InstallCpu and never destroyed: deleters need it for the life of the process.
CpuAllocator* installed = nullptr;

// True once a slot was reported to the profiler: until then no free asks whether one listens.
std::atomic<bool> profiled{false};

// Address space for each arena: more than any plan, and far below what the kernel allows.
constexpr Bytes kReserve = 256_GiB;

// A function of its own, as it needs a stack frame.
[[gnu::noinline]] void TellFreeWatch(const void* address) {
  CurrentFreeWatch()->OnAnyFree(address, __builtin_frame_address(0));
}

}  // namespace

void FreeCpu(void* address) {
  if (address == nullptr) return;
  if (CurrentFreeWatch() != nullptr) TellFreeWatch(address);
  if (PlannedArena* arena = installed->pool_.Find(address)) {
    if (profiled.load(std::memory_order_relaxed)) c10::profiledCPUMemoryReporter().Delete(address);
    if (TraceSink* sink = CurrentThread().sink) sink->OnSlotFree(kHost, address);
    arena->Free(address);
    return;
  }
  if (TraceSink* sink = CurrentThread().sink) sink->OnFree(kHost, address);
  installed->free_(address);
}

c10::DataPtr CpuAllocator::allocate(size_t size) {
  const ThreadState& thread = CurrentThread();
  if (thread.pass == nullptr && detail::ServesEagerCode()) detail::JoinEagerCode(__builtin_frame_address(0));
  if (size > 0 && thread.pass != nullptr && thread.pass->device() == kHost) {
    if (std::byte* slot = thread.pass->Serve(static_cast<Bytes>(size), nullptr, __builtin_frame_address(0))) {
      // Upstream tells the profiler of its own memory.
      if (c10::memoryProfilingEnabled()) {
        profiled.store(true, std::memory_order_relaxed);
        c10::profiledCPUMemoryReporter().New(slot, size);
      }
      return {slot, slot, &FreeCpu, c10::Device(c10::kCPU)};
    }
  }
  c10::DataPtr data = FromUpstream(size);
  (void)data.compare_exchange_deleter(free_, &FreeCpu);
  if (size > 0 && thread.sink != nullptr) {
    thread.sink->OnAlloc(kHost, data.get(), static_cast<Bytes>(size), nullptr);
  }
  return data;
}

// Before it is said that there is no memory, idle arenas give theirs back. Upstream says it by a plain c10::Error.
c10::DataPtr CpuAllocator::FromUpstream(size_t size) {
  for (bool again = false;; again = true) {
    try {
      return upstream_.allocate(size);
    } catch (const c10::Error& error) {
      if (!again && pool_.Trim() > 0) continue;
      TORCH_CHECK_WITH(OutOfMemoryError, false, error.msg());
    }
  }
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
