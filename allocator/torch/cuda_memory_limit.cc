#include "cuda_memory_limit.h"

#include <algorithm>
#include <string>

#include "livepool/base/error.h"

namespace livepool {

Bytes MemoryLimit::TotalLocked() {
  if (total_ == 0) total_ = machine_.total_memory(device_);
  return total_;
}

// The fraction of before livepool's first limit: of an earlier call, or of PYTORCH_CUDA_ALLOC_CONF.
void MemoryLimit::NoteFractionLocked() {
  if (!fraction_) fraction_ = upstream_.getMemoryFraction(device_);
}

double MemoryLimit::Fraction() {
  const std::lock_guard lock(mutex_);
  return shared_ ? *fraction_ : upstream_.getMemoryFraction(device_);
}

void MemoryLimit::SetFraction(double fraction) {
  const std::lock_guard lock(mutex_);
  upstream_.setMemoryFraction(fraction, device_);  // checks it
  fraction_ = fraction;
  shared_ = false;
  if (bytes_.has_value() || mapped_ > 0) ShareLocked();  // else it is all upstream's
}

void MemoryLimit::SetBytes(std::optional<Bytes> bytes) {
  const std::lock_guard lock(mutex_);
  bytes_ = bytes;
  ShareLocked();
}

void MemoryLimit::SetMapped(Bytes mapped) {
  const std::lock_guard lock(mutex_);
  mapped_ = mapped;
  ShareLocked();
}

void MemoryLimit::Share() {
  const std::lock_guard lock(mutex_);
  ShareLocked();
}

std::optional<Bytes> MemoryLimit::LimitLocked() {
  if (!upstream_.initialized()) return std::nullopt;
  NoteFractionLocked();
  std::optional<Bytes> limit = bytes_;
  if (*fraction_ < 1) {
    const auto share = static_cast<Bytes>(*fraction_ * static_cast<double>(TotalLocked()));
    limit = std::min(share, limit.value_or(share));
  }
  return limit;
}

void MemoryLimit::ShareLocked() {
  const std::optional<Bytes> limit = LimitLocked();
  if (limit.has_value()) {
    const double rest = static_cast<double>(std::max<Bytes>(*limit - mapped_, 0)) / static_cast<double>(TotalLocked());
    upstream_.setMemoryFraction(std::min(rest, 1.0), device_);
    shared_ = true;
  } else if (shared_) {
    upstream_.setMemoryFraction(*fraction_, device_);
    shared_ = false;
  }
}

void MemoryLimit::Check(Bytes more) {
  const std::lock_guard lock(mutex_);
  const std::optional<Bytes> limit = LimitLocked();
  if (!limit.has_value()) return;
  const Bytes upstream = upstream_.getDeviceStats(device_).reserved_bytes[0].current;
  if (upstream + mapped_ + more <= *limit) return;
  throw OutOfMemory("cuda:" + std::to_string(device_) + ": " + FormatBytes(more) +
                        " more for an arena would exceed the limit of " + FormatBytes(*limit) + ": PyTorch holds " +
                        FormatBytes(upstream) + ", arenas " + FormatBytes(mapped_) +
                        ". Raise it (livepool.set_memory_limit, LIVEPOOL_MEMORY_LIMIT, "
                        "torch.cuda.set_per_process_memory_fraction), or run smaller batches.",
                    more);
}

}  // namespace livepool
