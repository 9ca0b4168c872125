// PyTorch's CPU allocator with a count of what it has given out: to be put in place before livepool, whose upstream it
// then is.
#pragma once

#include <c10/core/Allocator.h>

#include <mutex>
#include <unordered_map>

namespace livepool::testing {

class CountingUpstream final : public c10::Allocator {
 public:
  // Immortal, as all allocators are.
  static CountingUpstream& Install() {
    static CountingUpstream& instance = *new CountingUpstream(*c10::GetAllocator(c10::kCPU));
    instance_ = &instance;
    c10::SetAllocator(c10::kCPU, &instance, /*priority=*/100);
    return instance;
  }

  c10::DataPtr allocate(std::size_t size) override {
    c10::DataPtr data = base_.allocate(size);
    (void)data.compare_exchange_deleter(base_.raw_deleter(), &Free);
    const std::lock_guard lock(mutex_);
    sizes_[data.get()] = size;
    live_ += size;
    peak_ = std::max(peak_, live_);
    return data;
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }
  void copy_data(void* dest, const void* src, std::size_t count) const override { default_copy_data(dest, src, count); }

  // The most that `function` has had at once, beyond what there was before. Bytes.
  template <typename Function>
  std::size_t PeakOf(const Function& function) {
    std::size_t before = 0;
    {
      const std::lock_guard lock(mutex_);
      before = peak_ = live_;
    }
    function();
    const std::lock_guard lock(mutex_);
    return peak_ - before;
  }

 private:
  explicit CountingUpstream(c10::Allocator& base) : base_(base) {}

  static void Free(void* address) {
    {
      const std::lock_guard lock(instance_->mutex_);
      if (const auto it = instance_->sizes_.find(address); it != instance_->sizes_.end()) {
        instance_->live_ -= it->second;
        instance_->sizes_.erase(it);
      }
    }
    instance_->base_.raw_deleter()(address);
  }

  inline static CountingUpstream* instance_ = nullptr;
  c10::Allocator& base_;
  std::mutex mutex_;
  std::unordered_map<const void*, std::size_t> sizes_;
  std::size_t live_ = 0;
  std::size_t peak_ = 0;
};

}  // namespace livepool::testing
