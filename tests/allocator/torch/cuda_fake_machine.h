// A machine for the CUDA allocator that has no GPU: its driver is the FakeDriver that lives.
#pragma once

#include <string>

#include "allocator/backend/fake_driver.h"
#include "cuda_machine.h"

namespace livepool {

inline cudaStream_t FakeStream(std::uintptr_t number) { return reinterpret_cast<cudaStream_t>(number); }

struct FakeMachine {
  static constexpr Bytes kTotal = 1_GiB;
  static inline cudaStream_t current = nullptr;   // of every device
  static inline cudaStream_t captured = nullptr;  // null: no stream is

  static constexpr CudaMachine kMachine{
      .driver = [](std::string*) -> const CudaDriver* { return &FakeDriver::table(); },
      .current_device = [] { return 0; },
      .current_stream = [](int) { return current; },
      .is_capturing = [](cudaStream_t stream) noexcept { return captured != nullptr && stream == captured; },
      .total_memory = [](int) { return kTotal; }};

  static void Reset() { current = captured = nullptr; }
};

}  // namespace livepool
