// Order between real streams, without kernels: a stream is held up by a host function until it is let go.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "cuda_order.h"
#include "livepool/backend/host_backend.h"

namespace livepool {
namespace {

// Holds up `stream` from construction to Open().
class Gate {
 public:
  explicit Gate(cudaStream_t stream) : stream_(stream) {
    EXPECT_EQ(cudaLaunchHostFunc(stream, &Wait, &open_), cudaSuccess);
  }
  ~Gate() {
    Open();
    EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  }
  void Open() { open_.store(true); }

 private:
  static void Wait(void* open) {
    while (!static_cast<std::atomic<bool>*>(open)->load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const cudaStream_t stream_;
  std::atomic<bool> open_{false};
};

bool IsWaiting(cudaStream_t stream) {
  const bool waiting = cudaStreamQuery(stream) == cudaErrorNotReady;
  (void)cudaGetLastError();  // "not ready" counts as an error
  return waiting;
}

class CudaOrderGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no CUDA device";
    for (cudaStream_t* stream : {&a_, &b_, &other_}) {
      ASSERT_EQ(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), cudaSuccess);
    }
    ASSERT_TRUE(arena_.TryHold());
    arena_.arena().Grow(1_MiB);
  }
  void TearDown() override {
    if (a_ == nullptr) return;
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);  // no error is left for somebody else's next call
  }
  // True if `stream` waits for what `gate` holds up, and for nothing else.
  static bool WaitsFor(cudaStream_t stream, Gate& gate) {
    const bool waits = IsWaiting(stream);
    gate.Open();
    return cudaStreamSynchronize(stream) == cudaSuccess && waits;
  }

  cudaStream_t a_ = nullptr;
  cudaStream_t b_ = nullptr;
  cudaStream_t other_ = nullptr;
  HostBackend backend_;  // order is all that is tested: nothing touches the memory
  PlannedArena arena_{backend_, 1_MiB};
  ArenaOrder order_{0, arena_, nullptr};
  const void* const slot_ = arena_.arena().base();
};

TEST_F(CudaOrderGpuTest, ThePassOnAnotherStreamWaits) {
  order_.BeginPass(a_);
  Gate gate(a_);
  order_.EndPass(a_);
  order_.BeginPass(b_);
  EXPECT_TRUE(WaitsFor(b_, gate));
}

TEST_F(CudaOrderGpuTest, WhatComesAfterThePassIsNotWaitedFor) {
  order_.BeginPass(a_);
  order_.EndPass(a_);
  Gate gate(a_);
  order_.BeginPass(b_);
  EXPECT_EQ(cudaStreamSynchronize(b_), cudaSuccess);
}

TEST_F(CudaOrderGpuTest, ASlotFreedAfterThePassIsWaitedFor) {
  order_.BeginPass(a_);
  order_.EndPass(a_);
  Gate gate(a_);
  order_.Freed(slot_);
  order_.BeginPass(b_);
  EXPECT_TRUE(WaitsFor(b_, gate));
}

TEST_F(CudaOrderGpuTest, ASlotThatOutlivesTwoPassesIsWaitedForByTheThird) {
  SlotTable table;
  table.first_of_op = {0, 1};
  table.allocations = {{.size = 64, .range = 0}};
  table.ranges = {{.offset = 0, .size = 64}};
  table.height = 64;
  BoundTable& bound = *arena_.Bind(table);
  order_.BeginPass(a_);
  ASSERT_EQ(arena_.Serve(bound.entries[0], /*join=*/false), slot_);
  order_.EndPass(a_);
  order_.BeginPass(b_);
  Gate gate(a_);
  order_.Freed(slot_);
  arena_.Free(slot_);
  order_.EndPass(b_);
  order_.BeginPass(b_);
  EXPECT_TRUE(WaitsFor(b_, gate));
}

TEST_F(CudaOrderGpuTest, RecordStreamHoldsUpThePassAtTheFree) {
  order_.BeginPass(a_);
  order_.Use(slot_, other_);
  Gate gate(other_);
  EXPECT_FALSE(IsWaiting(a_));
  order_.Freed(slot_);
  EXPECT_TRUE(WaitsFor(a_, gate));
}

TEST_F(CudaOrderGpuTest, RecordStreamHoldsUpATensorInPlace) {
  order_.BeginPass(a_);
  order_.Use(slot_, other_);
  Gate gate(other_);
  order_.Served(slot_);
  EXPECT_TRUE(WaitsFor(a_, gate));
}

TEST_F(CudaOrderGpuTest, RecordStreamHoldsUpTheNextPass) {
  order_.BeginPass(a_);
  order_.Use(slot_, other_);
  order_.EndPass(a_);
  Gate gate(other_);
  order_.Freed(slot_);
  order_.BeginPass(b_);
  EXPECT_TRUE(WaitsFor(b_, gate));
}

TEST_F(CudaOrderGpuTest, RecordStreamOfThePassItselfCostsNothing) {
  order_.BeginPass(a_);
  order_.Use(slot_, a_);
  order_.Freed(slot_);
  EXPECT_FALSE(IsWaiting(a_));
}

TEST_F(CudaOrderGpuTest, ACaptureGetsNoWaitsFromOutside) {
  order_.BeginPass(b_);
  order_.EndPass(b_);
  ASSERT_EQ(cudaStreamBeginCapture(a_, cudaStreamCaptureModeRelaxed), cudaSuccess);
  order_.BeginPass(a_);
  order_.EndPass(a_);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(a_, &graph), cudaSuccess);
  ASSERT_NE(graph, nullptr);
  std::size_t nodes = 1;
  EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &nodes), cudaSuccess);
  EXPECT_EQ(nodes, 0u);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(CudaOrderGpuTest, AFreeLeavesTheUsersCaptureAlone) {
  order_.BeginPass(a_);
  order_.Use(slot_, other_);
  order_.EndPass(a_);
  Gate gate(other_);
  ASSERT_EQ(cudaStreamBeginCapture(a_, cudaStreamCaptureModeRelaxed), cudaSuccess);
  order_.Freed(slot_);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(a_, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  order_.BeginPass(b_);
  EXPECT_TRUE(WaitsFor(b_, gate));
}

TEST_F(CudaOrderGpuTest, WaitIdleWaitsForAllOfThem) {
  order_.BeginPass(a_);
  order_.Use(slot_, other_);
  order_.EndPass(a_);
  Gate gate(other_);
  order_.Freed(slot_);
  std::atomic<bool> idle{false};
  std::thread waiter([&] {
    order_.WaitIdle();
    idle.store(true);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(idle.load());
  gate.Open();
  waiter.join();
  EXPECT_TRUE(idle.load());
}

}  // namespace
}  // namespace livepool
