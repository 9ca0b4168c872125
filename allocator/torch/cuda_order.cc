#include "cuda_order.h"

#include <c10/cuda/CUDAException.h>

#include <algorithm>
#include <new>

namespace livepool {
namespace {

// True if the call went well. CUDA keeps an error until it is asked for, and torch would then blame its own
// next call: clear it.
bool Succeeds(cudaError_t result) noexcept {
  if (result == cudaSuccess) return true;
  (void)cudaGetLastError();
  return false;
}

}  // namespace

bool IsCapturing(cudaStream_t stream) noexcept {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  return Succeeds(cudaStreamIsCapturing(stream, &status)) && status != cudaStreamCaptureStatusNone;
}

void ArenaOrder::BeginPass(cudaStream_t stream) {
  const std::lock_guard lock(mutex_);
  const OnDevice on(device_);
  if (!IsCapturing(stream)) WaitForOthersLocked(stream);
  stream_.store(stream, std::memory_order_relaxed);
  running_.store(true, std::memory_order_release);
}

void ArenaOrder::WaitForOthersLocked(cudaStream_t stream) {
  const cudaStream_t last = this->stream();
  // A captured stream cannot record an event for streams outside of the capture: a later pass does it then.
  if (last_use_ != nullptr && !IsCapturing(last) && used_since_.exchange(false, std::memory_order_acq_rel)) {
    C10_CUDA_CHECK(cudaEventRecord(last_use_, last));
  }
  // Also on the same stream, where the driver sees that there is nothing to wait for: a stream of the user's
  // may be a new one at an old address.
  if (last_use_ != nullptr) C10_CUDA_CHECK(cudaStreamWaitEvent(stream, last_use_, 0));
  for (const cudaStream_t late : late_) {
    if (late != stream && !IsCapturing(late)) SettleLocked(late, stream);
  }
  while (!pending_.empty()) {
    C10_CUDA_CHECK(cudaStreamWaitEvent(stream, pending_.back(), 0));
    spare_.push_back(pending_.back());
    pending_.pop_back();
  }
  if (arena_.LiveBytes() == 0) {
    late_.clear();
  } else if (last_use_ != nullptr && last != stream && std::find(late_.begin(), late_.end(), last) == late_.end()) {
    late_.push_back(last);
  }
}

void ArenaOrder::EndPass(cudaStream_t stream) noexcept {
  const std::lock_guard lock(mutex_);
  running_.store(false, std::memory_order_release);
  const OnDevice on(device_);
  if (IsCapturing(stream)) return;
  const bool recorded =
      (last_use_ != nullptr || Succeeds(cudaEventCreateWithFlags(&last_use_, cudaEventDisableTiming))) &&
      Succeeds(cudaEventRecord(last_use_, stream));
  if (!recorded) used_since_.store(true, std::memory_order_release);  // tried again when the next pass begins
}

void ArenaOrder::Use(const void* slot, cudaStream_t stream) {
  const std::lock_guard lock(mutex_);
  if (stream == this->stream() && late_.empty()) return;  // the slot's own stream
  std::vector<cudaStream_t>& users = users_[slot];
  if (std::find(users.begin(), users.end(), stream) == users.end()) users.push_back(stream);
  used_slots_.store(static_cast<int>(users_.size()), std::memory_order_release);
}

void ArenaOrder::Freed(const void* slot) noexcept {
  if (!running_.load(std::memory_order_acquire)) used_since_.store(true, std::memory_order_release);
  if (used_slots_.load(std::memory_order_acquire) > 0) Settle(slot);
}

void ArenaOrder::Settle(const void* slot) noexcept {
  const std::lock_guard lock(mutex_);
  const auto it = users_.find(slot);
  if (it == users_.end()) return;
  const OnDevice on(device_);
  for (const cudaStream_t user : it->second) SettleLocked(user, stream());
  users_.erase(it);
  used_slots_.store(static_cast<int>(users_.size()), std::memory_order_release);
}

void ArenaOrder::GivenBack(cudaStream_t user) noexcept {
  const std::lock_guard lock(mutex_);
  const OnDevice on(device_);
  if (user != stream()) SettleLocked(user, stream());
  if (!running_.load(std::memory_order_acquire)) used_since_.store(true, std::memory_order_release);
}

// `stream` waits for what `user` has been given so far.
void ArenaOrder::SettleLocked(cudaStream_t user, cudaStream_t stream) noexcept {
  // What is captured runs when its graph is launched, which nobody can wait for; and the wait would pull `stream` into
  // the capture.
  if (!running_.load(std::memory_order_relaxed) && IsCapturing(user)) return;
  cudaEvent_t event = nullptr;
  if (!spare_.empty()) {
    event = spare_.back();
    spare_.pop_back();
  } else if (!Succeeds(cudaEventCreateWithFlags(&event, cudaEventDisableTiming))) {
    event = nullptr;
  }
  const bool recorded = event != nullptr && Succeeds(cudaEventRecord(event, user));
  // Without an event only waiting on the host is left. It fails where the stream itself is gone, and then
  // there is nothing to wait for.
  if (!recorded) (void)Succeeds(cudaStreamSynchronize(user));
  // With no pass running, the last stream may be in a capture of the user's, which must not get our wait.
  const bool later = recorded && !running_.load(std::memory_order_relaxed) && IsCapturing(stream);
  if (recorded && !later && !Succeeds(cudaStreamWaitEvent(stream, event, 0)) && !IsCapturing(stream)) {
    (void)Succeeds(cudaEventSynchronize(event));
  }
  if (event == nullptr) return;
  try {
    // After the wait the event is free again: the wait is for what was recorded by then.
    (later ? pending_ : spare_).push_back(event);
  } catch (const std::bad_alloc&) {
    // Without room to remember it, the event stays with the process.
    if (later) (void)Succeeds(cudaEventSynchronize(event));
  }
}

void ArenaOrder::WaitIdle() noexcept {
  const std::lock_guard lock(mutex_);
  const OnDevice on(device_);
  if (last_use_ == nullptr) return;
  for (const cudaStream_t late : late_) (void)Succeeds(cudaStreamSynchronize(late));
  if (used_since_.load(std::memory_order_acquire)) (void)Succeeds(cudaEventRecord(last_use_, stream()));
  (void)Succeeds(cudaEventSynchronize(last_use_));
  for (const cudaEvent_t event : pending_) (void)Succeeds(cudaEventSynchronize(event));
}

}  // namespace livepool
