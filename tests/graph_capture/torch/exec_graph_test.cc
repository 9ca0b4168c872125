// The C++ API on the CPU: capture, replay, refusals. The adversarial programs are in test_*.py beside this.
#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/item.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/nonzero.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "livepool/livepool.h"
#include "livepool/pool/thread_state.h"

namespace livepool {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class ExecGraphTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { Install(DeviceId::Kind::kHost); }

  c10::NoGradGuard no_grad_;
  at::Tensor weight_ = at::randn({64, 64});
  // Two matrix products with a pointwise op between them, whose output may take its input's slot.
  Callable mlp_ = [this](const Tensors& in) {
    return Tensors{at::matmul(at::gelu(at::matmul(in[0], weight_)), weight_)};
  };
  CaptureOptions options_{.state = {{"weight", weight_}}, .argument_names = {"x"}};
};

TEST_F(ExecGraphTest, ReplaysOtherInputsBitForBit) {
  const auto graph = Capture(mlp_, {at::randn({16, 64})}, options_);
  for (int i = 0; i < 3; ++i) {
    const at::Tensor x = at::randn({16, 64});
    EXPECT_TRUE(graph->Replay({x})[0].equal(mlp_({x})[0]));
  }
  const GraphReport report = graph->Report();
  EXPECT_EQ(report.ops, 3);
  EXPECT_TRUE(report.checked);
  EXPECT_EQ(report.misses, 0);
  EXPECT_EQ(report.in_place_buffers, 1);
  EXPECT_EQ(report.sum_bytes, 3 * 16 * 64 * 4);
  // The hidden layer once: gelu works in its input's slot, and the output is the caller's.
  EXPECT_EQ(report.arena_bytes, 16 * 64 * 4);
  EXPECT_EQ(report.lower_bound_bytes, report.arena_bytes);
}

TEST_F(ExecGraphTest, WithoutInPlaceSlotsTheArenaIsLargerAndTheResultTheSame) {
  options_.in_place = false;
  const auto graph = Capture(mlp_, {at::randn({16, 64})}, options_);
  const at::Tensor x = at::randn({16, 64});
  EXPECT_TRUE(graph->Replay({x})[0].equal(mlp_({x})[0]));
  EXPECT_EQ(graph->Report().arena_bytes, 2 * 16 * 64 * 4);
}

// A tensor that says, when it is freed, whether that is inside a pass.
at::Tensor Watched(bool& freed, bool& inside_pass) {
  auto* bytes = new std::vector<float>(16 * 64, 1.0F);
  return at::from_blob(bytes->data(), {16, 64}, [bytes, &freed, &inside_pass](void*) {
    freed = true;
    inside_pass = CurrentThread().pass != nullptr;
    delete bytes;
  });
}

TEST_F(ExecGraphTest, InputsThatAreGivenAwayAreFreedAtTheirLastUse) {
  const auto graph = Capture(mlp_, {at::randn({16, 64})}, options_);
  graph->Replay({at::randn({16, 64})});  // a replay that is checked needs them to its end
  bool freed = false, inside_pass = false;
  Tensors kept{Watched(freed, inside_pass)};
  graph->Replay(kept);
  EXPECT_FALSE(freed);
  const at::Tensor expected = mlp_(kept)[0];
  EXPECT_TRUE(graph->Replay(std::move(kept))[0].equal(expected));
  EXPECT_TRUE(freed && inside_pass);
}

TEST_F(ExecGraphTest, FollowsTheBytesOfTheState) {
  const auto graph = Capture(mlp_, {at::randn({16, 64})}, options_);
  weight_.mul_(-2);
  const at::Tensor x = at::randn({16, 64});
  EXPECT_TRUE(graph->Replay({x})[0].equal(mlp_({x})[0]));
}

TEST_F(ExecGraphTest, RefusesReplacedState) {
  const auto graph = Capture(mlp_, {at::randn({16, 64})}, options_);
  weight_.set_data(at::randn({64, 64}));
  EXPECT_THAT([&] { graph->Replay({at::randn({16, 64})}); },
              ThrowsMessage<ReplayMismatch>(HasSubstr("state 'weight' was replaced")));
}

TEST_F(ExecGraphTest, NamesTheArgumentThatDiffers) {
  const auto graph = Capture(mlp_, {at::randn({16, 64})}, options_);
  EXPECT_THAT([&] { graph->Replay({at::randn({8, 64})}); },
              ThrowsMessage<ReplayMismatch>(
                  ::testing::AllOf(HasSubstr("argument 'x'"), HasSubstr("[8, 64]"), HasSubstr("[16, 64]"))));
  EXPECT_THAT([&] { graph->Replay({at::randn({16, 64}).to(at::kDouble)}); },
              ThrowsMessage<ReplayMismatch>(HasSubstr("Double")));
  EXPECT_THAT([&] { graph->Replay({}); }, ThrowsMessage<ReplayMismatch>(HasSubstr("0 tensor arguments")));
  EXPECT_THAT([&] { graph->Replay({at::Tensor()}); }, ThrowsMessage<ReplayMismatch>(HasSubstr("undefined")));
  const at::Tensor x = at::randn({16, 64});
  EXPECT_TRUE(graph->Replay({x})[0].equal(mlp_({x})[0]));  // still usable
}

TEST_F(ExecGraphTest, RefusesWithGradMode) {
  const c10::AutoGradMode grad(true);
  EXPECT_THAT([&] { Capture(mlp_, {at::randn({16, 64})}, options_); },
              ThrowsMessage<CaptureRefused>(HasSubstr("grad mode is enabled")));
}

// What StateOf needs of a torch::nn::Module, whose header takes half a minute to compile.
struct FakeModule {
  struct Named {
    std::string name;
    at::Tensor value;
  };
  bool training = false;
  std::vector<Named> parameters, buffers;

  bool is_training() const { return training; }
  const std::vector<Named>& named_parameters() const { return parameters; }
  const std::vector<Named>& named_buffers() const { return buffers; }
};

TEST_F(ExecGraphTest, TheStateOfAModuleIsItsParametersAndBuffersByName) {
  FakeModule module{.parameters = {{"weight", weight_}}, .buffers = {{"mean", at::randn({2})}}};
  const auto state = StateOf(module);
  ASSERT_EQ(state.size(), 2u);
  EXPECT_EQ(state[0].first, "weight");
  EXPECT_TRUE(state[0].second.is_same(weight_));
  EXPECT_EQ(state[1].first, "mean");
  module.training = true;
  EXPECT_THAT([&] { StateOf(module); }, ThrowsMessage<CaptureRefused>(HasSubstr("training mode")));
}

TEST_F(ExecGraphTest, RefusesAHiddenInputAndNamesTheOp) {
  EXPECT_THAT([&] { Capture(mlp_, {at::randn({16, 64})}); },  // the weight is not declared
              ThrowsMessage<CaptureRefused>(
                  ::testing::AllOf(HasSubstr("aten::matmul"), HasSubstr("[64, 64]"), HasSubstr("hidden input"))));
}

TEST_F(ExecGraphTest, RefusesBytesThatNoOpHasWritten) {
  const Callable fn = [](const Tensors& in) {
    at::Tensor table = at::empty({4});
    table.mutable_data_ptr<float>()[0] = 1;  // behind the dispatcher's back
    return Tensors{at::add(in[0], table)};
  };
  EXPECT_THAT([&] { Capture(fn, {at::randn({4})}); },
              ThrowsMessage<CaptureRefused>(HasSubstr("no recorded op has written")));
}

TEST_F(ExecGraphTest, GuardsWhatTheHostReads) {
  const Callable fn = [](const Tensors& in) {
    return Tensors{in[0].sum().item<float>() > 0 ? at::relu(in[0]) : at::add(in[0], 1)};
  };
  const at::Tensor x = at::full({8}, 2.0);
  const auto graph = Capture(fn, {x});
  EXPECT_TRUE(graph->Replay({x})[0].equal(x));
  EXPECT_THAT([&] { graph->Replay({at::full({8}, -2.0)}); },
              ThrowsMessage<GuardFailed>(HasSubstr("_local_scalar_dense")));
  EXPECT_TRUE(graph->Replay({x})[0].equal(x));
}

TEST_F(ExecGraphTest, AnOpsOwnErrorComesThroughUnchanged) {
  EXPECT_THROW(Capture([](const Tensors& in) { return Tensors{at::matmul(in[0], in[0])}; }, {at::randn({2, 3})}),
               c10::Error);
  const auto graph = Capture(mlp_, {at::randn({16, 64})}, options_);
  EXPECT_NO_THROW(graph->Replay({at::randn({16, 64})}));
}

TEST_F(ExecGraphTest, TwoGraphsShareOneArena) {
  const auto small = Capture(mlp_, {at::randn({16, 64})}, options_);
  const auto large = Capture(mlp_, {at::randn({4096, 64})}, options_);
  const at::Tensor x = at::randn({16, 64});
  const at::Tensor y = at::randn({4096, 64});
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(small->Replay({x})[0].equal(mlp_({x})[0]));
    EXPECT_TRUE(large->Replay({y})[0].equal(mlp_({y})[0]));
  }
  const Bytes largest = std::max(small->Report().arena_bytes, large->Report().arena_bytes);
  EXPECT_EQ(PoolOf({}).Stats().arena_bytes, AlignUp(largest, PoolOf({}).backend().Granularity()));
}

TEST_F(ExecGraphTest, ThreadsReplayOneGraphAtOnce) {
  const auto graph = Capture(mlp_, {at::randn({16, 64})}, options_);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const c10::NoGradGuard no_grad;
      for (int i = 0; i < 50; ++i) {
        const at::Tensor x = at::randn({16, 64});
        if (!graph->Replay({x})[0].equal(mlp_({x})[0])) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(graph->Report().misses, 0);
}

}  // namespace
}  // namespace livepool
