// The CUDA allocator on machines without a GPU: a fake driver, a fake CUDA runtime, and an upstream whose memory
// is numbers.
#pragma once

#include <c10/util/Exception.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "allocator/torch/cuda_fake_upstream.h"

namespace livepool {

// A program that compiles cuda_fake_runtime.cc gets that file's functions instead of the CUDA runtime's and of
// LoadCudaDriver, as the linker prefers a program's own symbols to those of its libraries. They work on the
// FakeDriver that lives; a stream never captures, an event is always done.

// Hands out addresses that nobody may touch.
class NumbersUpstream final : public FakeUpstream {
 public:
  c10::DataPtr allocate(size_t size) override {
    void* const address = raw_alloc(size);
    return {address, address, &Delete, c10::Device(c10::kCUDA, 0)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Delete; }
  void* raw_alloc(size_t size) override {
    if (size == 0) return nullptr;
    const std::lock_guard lock(mutex_);
    const Bytes bytes = AlignUp(static_cast<Bytes>(size), 512);
    TORCH_CHECK_WITH(OutOfMemoryError, bytes <= total - held_, "fake upstream: no ", size, " bytes");
    next_ += bytes + 512;
    held_ += bytes;
    live_[next_ - bytes] = bytes;
    return reinterpret_cast<void*>(next_ - bytes);
  }
  void* raw_alloc_with_stream(size_t size, cudaStream_t) override { return raw_alloc(size); }
  void raw_delete(void* address) override {
    if (address == nullptr) return;
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(reinterpret_cast<Bytes>(address));
    if (found == live_.end()) return misuse_.push_back("freed what is not allocated");
    held_ -= found->second;
    live_.erase(found);
  }
  // The caches' bytes go: `total` may be had again. See `empties`.
  void emptyCache(c10_compat::MempoolId_t) override {
    const std::lock_guard lock(mutex_);
    ++empties_;
  }

  Bytes held() const {
    const std::lock_guard lock(mutex_);
    return held_;
  }
  int empties() const {
    const std::lock_guard lock(mutex_);
    return empties_;
  }
  std::vector<std::string> misuse() const {
    const std::lock_guard lock(mutex_);
    return misuse_;
  }

  // The one that deleters free to.
  static NumbersUpstream& Instance() {
    static auto& instance = *new NumbersUpstream;
    return instance;
  }

 private:
  static void Delete(void* address) { Instance().raw_delete(address); }

  mutable std::mutex mutex_;
  std::map<Bytes, Bytes> live_;  // size by address
  std::vector<std::string> misuse_;
  Bytes next_ = 0x1000'0000'0000;
  Bytes held_ = 0;
  int empties_ = 0;
};

}  // namespace livepool
