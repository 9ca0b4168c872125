// A backend that can be stopped inside one call: races of two threads become tests with one outcome.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <semaphore>
#include <string>
#include <thread>

#include "allocator/backend/fake_backend.h"

namespace livepool {

// A FakeBackend but for the stop.
class StoppingBackend final : public Backend {
 public:
  enum class Call { kNone, kGranularity, kMap };

  // The next `call` stops until Continue.
  void StopAt(Call call) { stop_at_ = call; }
  void WaitUntilStopped() { stopped_.acquire(); }
  void Continue() { continued_.release(); }
  const FakeBackend& memory() const { return memory_; }

  std::string Name() const override { return memory_.Name(); }
  Bytes Granularity() const override {
    MaybeStop(Call::kGranularity);
    return memory_.Granularity();
  }
  Bytes Alignment() const override { return memory_.Alignment(); }
  std::byte* Reserve(Bytes size) override { return memory_.Reserve(size); }
  void Map(std::byte* address, Bytes size) override {
    MaybeStop(Call::kMap);
    memory_.Map(address, size);
  }
  void Unmap(std::byte* address, Bytes size) noexcept override { memory_.Unmap(address, size); }
  void Fill(std::byte* address, Bytes size, std::byte value, StreamHandle stream) noexcept override {
    memory_.Fill(address, size, value, stream);
  }

 private:
  void MaybeStop(Call call) const {
    if (Call expected = call; !stop_at_.compare_exchange_strong(expected, Call::kNone)) return;
    stopped_.release();
    continued_.acquire();
  }

  FakeBackend memory_;
  mutable std::atomic<Call> stop_at_{Call::kNone};
  mutable std::binary_semaphore stopped_{0};
  mutable std::binary_semaphore continued_{0};
};

// Runs `first` until it stops, then `second` beside it: it may finish meanwhile, or wait for `first`.
template <typename First, typename Second>
void RunBeside(StoppingBackend& backend, StoppingBackend::Call stop_at, First first, Second second) {
  backend.StopAt(stop_at);
  std::thread first_thread(first);
  backend.WaitUntilStopped();
  std::atomic<bool> done{false};
  std::thread second_thread([&] {
    second();
    done = true;
  });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  while (!done && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  backend.Continue();
  first_thread.join();
  second_thread.join();
}

}  // namespace livepool
