#include "cuda_open_pools.h"

#include <algorithm>
#include <mutex>

#include "livepool/torch/cuda_pass.h"

namespace livepool {
namespace {

thread_local int own_captures = 0;

}  // namespace

OwnCaptureScope::OwnCaptureScope() { ++own_captures; }
OwnCaptureScope::~OwnCaptureScope() { --own_captures; }
bool InOwnCapture() { return own_captures > 0; }

void OpenPools::Begin(c10_compat::MempoolId_t id, c10_compat::PoolFilter filter, cudaStream_t stream, bool own) {
  const std::unique_lock lock(mutex_);
  open_.push_back({id, std::move(filter), stream, own});
  count_.store(static_cast<int>(open_.size()), std::memory_order_release);
}

void OpenPools::End(c10_compat::MempoolId_t id) {
  const std::unique_lock lock(mutex_);
  // The innermost: the same pool may be open twice, on two threads.
  const auto it = std::find_if(open_.rbegin(), open_.rend(), [&](const Open& open) { return open.id == id; });
  if (it != open_.rend()) open_.erase(std::next(it).base());
  count_.store(static_cast<int>(open_.size()), std::memory_order_release);
}

bool OpenPools::Capturing() const {
  if (!any()) return false;
  const std::shared_lock lock(mutex_);
  return std::any_of(open_.begin(), open_.end(), [&](const Open& open) { return machine_.is_capturing(open.stream); });
}

bool OpenPools::Covers(cudaStream_t stream) const {
  if (!any()) return false;
  const std::shared_lock lock(mutex_);
  return std::any_of(open_.begin(), open_.end(), [&](const Open& open) { return !open.own && open.filter(stream); });
}

}  // namespace livepool
