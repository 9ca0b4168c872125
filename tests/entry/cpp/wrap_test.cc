// livepool::Wrap on the CPU: callables, torch::nn modules and TorchScript modules. The rules that it shares with
// Python's wrap() are tested in tests/entry/python/test_wrap_*.py; here, that C++ keeps them too.
#include <ATen/ops/from_blob.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/passes/tensorexpr_fuser.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>
#include <torch/script.h>

#include <atomic>
#include <thread>

#include "livepool/livepool.h"
#include "livepool/pool/thread_state.h"

namespace livepool {
namespace {

using ::testing::HasSubstr;

class WrapTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { Install(DeviceId::Kind::kHost); }

  void Expect(const Wrapped& wrapped, const Callable& plain, const Tensors& in) {
    const Tensors got = wrapped(in);
    const Tensors want = plain(in);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(got[i].equal(want[i]));
  }

  c10::NoGradGuard no_grad_;
  at::Tensor weight_ = at::randn({8, 8});
  Callable mlp_ = [this](const Tensors& in) {
    return Tensors{at::matmul(at::gelu(at::matmul(in[0], weight_)), weight_)};
  };
  WrapOptions options_{.capture_after = 1, .state = {{"weight", weight_}}, .name = "mlp"};
};

TEST_F(WrapTest, CapturesEachSignatureOnceAndReplaysIt) {
  const Wrapped wrapped = Wrap(mlp_, {.state = options_.state});
  for (int i = 0; i < 5; ++i) {
    for (const std::int64_t rows : {2, 5}) Expect(wrapped, mlp_, {at::randn({rows, 8})});
  }
  const WrapReport report = wrapped.Explain();
  ASSERT_EQ(report.signatures.size(), 2U);
  EXPECT_EQ(report.signatures[0].signature, "Float[2, 8]");
  EXPECT_EQ(report.replayed, 2 * 3);  // seen, captured, then replayed
  EXPECT_EQ(report.as_is.at("not seen often enough yet"), 2);
  EXPECT_EQ(report.signatures[1].graph->misses, 0);
  EXPECT_GT(report.signatures[1].graph->hits, 0);
  EXPECT_THAT(report.ToText(),
              HasSubstr("callable: 6 calls replayed\n  (Float[2, 8]) 3 ops, 3 buffers, bound 64 B, arena 64 B"));
}

// A tensor that says, when it is freed, whether that is inside a pass.
at::Tensor Watched(bool& freed, bool& inside_pass) {
  auto* bytes = new std::vector<float>(2 * 8, 1.0F);
  return at::from_blob(bytes->data(), {2, 8}, [bytes, &freed, &inside_pass](void*) {
    freed = true;
    inside_pass = CurrentThread().pass != nullptr;
    delete bytes;
  });
}

TEST_F(WrapTest, InputsThatAreGivenAwayAreFreedAtTheirLastUse) {
  const Wrapped wrapped = Wrap(mlp_, options_);
  for (int i = 0; i < 2; ++i) (void)wrapped({at::randn({2, 8})});  // captured, checked
  bool freed = false, inside_pass = false;
  Tensors inputs{Watched(freed, inside_pass)};
  (void)wrapped(inputs);
  EXPECT_FALSE(freed);
  const at::Tensor expected = mlp_(inputs)[0];
  EXPECT_TRUE(wrapped.Consume(std::move(inputs))[0].equal(expected));
  EXPECT_TRUE(freed && inside_pass);
  EXPECT_EQ(wrapped.Explain().replayed, 3);
}

TEST_F(WrapTest, InputsThatAreGivenAwayAreThereIfNoReplayTakesThem) {
  const Wrapped wrapped = Wrap(mlp_, {.capture_after = 2, .state = options_.state});
  for (int i = 0; i < 4; ++i) {
    const at::Tensor x = at::randn({2, 8});
    EXPECT_TRUE(wrapped.Consume({x})[0].equal(mlp_({x})[0]));
  }
  weight_.set_data(at::randn({8, 8}));  // the replay does not begin
  const at::Tensor x = at::randn({2, 8});
  EXPECT_TRUE(wrapped.Consume({x})[0].equal(mlp_({x})[0]));
}

TEST_F(WrapTest, OutputsInTheArenaAreGoodUntilTheNextCall) {
  options_.outputs_in_arena = true;
  const Wrapped wrapped = Wrap(mlp_, options_);
  for (int i = 0; i < 2; ++i) (void)wrapped({at::randn({2, 8})});
  at::Tensor x = at::randn({2, 8});
  at::Tensor expected = x;
  for (int i = 0; i < 3; ++i) {
    x = wrapped({x})[0];
    expected = mlp_({expected})[0];
    EXPECT_NE(PoolOf({}).Find(x.const_data_ptr()), nullptr);
    EXPECT_TRUE(x.equal(expected));
  }
}

TEST_F(WrapTest, BadOptionsAreRefused) {
  EXPECT_THROW(Wrap(mlp_, {.max_graphs = 0}), InvalidInput);
  EXPECT_THROW(Wrap(mlp_, {.capture_after = 0}), InvalidInput);
}

TEST_F(WrapTest, RunsAsItIsInGradModeAndInADisabledScope) {
  const Wrapped wrapped = Wrap(mlp_, options_);
  {
    const c10::AutoGradMode grad(true);
    at::Tensor x = at::randn({2, 8}).requires_grad_();
    EXPECT_TRUE(wrapped({x})[0].requires_grad());
  }
  {
    const DisabledScope disabled;
    wrapped({at::randn({2, 8})});
  }
  const WrapReport report = wrapped.Explain();
  EXPECT_TRUE(report.signatures.empty());
  EXPECT_EQ(report.as_is.at("grad mode"), 1);
}

TEST_F(WrapTest, RunsOnceThoughTheCaptureIsRefused) {
  int runs = 0;
  const at::Tensor hidden = at::randn({2, 8});
  const Wrapped wrapped = Wrap(
      [&](const Tensors& in) {
        ++runs;
        return Tensors{in[0] + hidden};
      },
      {.capture_after = 1});
  testing::internal::CaptureStderr();
  const at::Tensor x = at::randn({2, 8});
  for (int i = 1; i <= 3; ++i) {
    EXPECT_TRUE(wrapped({x})[0].equal(x + hidden));
    EXPECT_EQ(runs, i);
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("livepool: callable runs as it is for (Float[2, 8]): "));
  EXPECT_EQ(said.find("runs as it is"), said.rfind("runs as it is"));
  EXPECT_THAT(wrapped.Explain().signatures[0].refusal, HasSubstr("hidden input"));
}

TEST_F(WrapTest, EffectsHappenOnce) {
  at::Tensor mine = at::zeros({8}), theirs = at::zeros({8});
  const auto step = [this](const Tensors& in, at::Tensor& sum) {
    sum.add_(in[0].sum(0));
    return Tensors{at::matmul(in[0], weight_) + sum};
  };
  const Wrapped wrapped = Wrap([&](const Tensors& in) { return step(in, mine); },
                               {.capture_after = 1, .state = {{"weight", weight_}, {"sum", mine}}});
  for (int i = 0; i < 5; ++i) {
    const at::Tensor x = at::randn({3, 8});
    EXPECT_TRUE(wrapped({x})[0].equal(step({x}, theirs)[0]));
    EXPECT_TRUE(mine.equal(theirs));
  }
  EXPECT_EQ(wrapped.Explain().replayed, 4);
}

TEST_F(WrapTest, AGuardThatFailsRunsTheCallable) {
  const Callable by_sign = [this](const Tensors& in) {
    const at::Tensor y = at::matmul(in[0], weight_);
    return Tensors{in[0].sum().gt(0).item<bool>() ? y * 2 : y - at::rand({2, 8})};
  };
  const Wrapped wrapped = Wrap(by_sign, options_);
  testing::internal::CaptureStderr();
  for (int i = 0; i < 6; ++i) {
    const at::Tensor x = at::rand({2, 8}) * (i % 3 == 2 ? -1 : 1);
    at::manual_seed(1);
    const at::Tensor got = wrapped({x})[0], after = at::rand({3});
    at::manual_seed(1);
    EXPECT_TRUE(got.equal(by_sign({x})[0]));
    EXPECT_TRUE(after.equal(at::rand({3})));
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("where a value that it reads differs"));
  EXPECT_EQ(wrapped.Explain().replayed, 3);
  EXPECT_EQ(wrapped.Explain().signatures[0].given_up, 2);
}

TEST_F(WrapTest, ErrorsAreTheCallables) {
  const Callable lookup = [this](const Tensors& in) { return Tensors{at::embedding(weight_, in[0]) * 2}; };
  const Wrapped wrapped = Wrap(lookup, options_);
  Expect(wrapped, lookup, {at::tensor({0, 1})});
  Expect(wrapped, lookup, {at::tensor({2, 3})});
  EXPECT_THROW(wrapped({at::tensor({0, 99})}), c10::IndexError);
  Expect(wrapped, lookup, {at::tensor({3, 1})});
  const Wrapped throws = Wrap([](const Tensors&) -> Tensors { throw std::logic_error("mine"); }, {.capture_after = 1});
  for (int i = 0; i < 3; ++i) EXPECT_THROW(throws({weight_}), std::logic_error);
}

TEST_F(WrapTest, ReplacedStateIsCapturedAnew) {
  const Wrapped wrapped = Wrap(mlp_, options_);
  for (int i = 0; i < 3; ++i) Expect(wrapped, mlp_, {at::randn({2, 8})});
  weight_.set_data(at::randn({8, 8}));
  for (int i = 0; i < 5; ++i) Expect(wrapped, mlp_, {at::randn({2, 8})});
  EXPECT_EQ(wrapped.Explain().signatures[0].captures, 2);
}

TEST_F(WrapTest, TheLeastRecentlyUsedGraphGoes) {
  options_.max_graphs = 2;
  const Wrapped wrapped = Wrap(mlp_, options_);
  for (const std::int64_t rows : {1, 2, 1, 3}) Expect(wrapped, mlp_, {at::randn({rows, 8})});
  std::vector<bool> has_graph;
  for (const SignatureReport& each : wrapped.Explain().signatures) has_graph.push_back(each.graph.has_value());
  EXPECT_EQ(has_graph, (std::vector{true, false, true}));
}

TEST_F(WrapTest, SeveralThreadsGetTheirOwnResults) {
  options_.max_graphs = 2;
  const Wrapped wrapped = Wrap(mlp_, options_);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const c10::InferenceMode inference;
      for (int i = 0; i < 200; ++i) {
        const at::Tensor x = at::randn({1 + (t + i) % 3, 8});
        if (!wrapped({x})[0].equal(mlp_({x})[0])) ++wrong;
      }
    });
  }
  for (std::thread& each : threads) each.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(wrapped.Explain().replayed, 0);
}

TEST_F(WrapTest, AWrappedCallableInsideACaptureRunsAsItIs) {
  const Wrapped inner = Wrap(mlp_, options_);
  for (int i = 0; i < 3; ++i) inner({at::randn({2, 8})});
  const auto graph = Capture([&](const Tensors& in) { return Tensors{inner(in)[0] + 1}; }, {at::randn({2, 8})},
                             {.state = options_.state});
  EXPECT_EQ(graph->Report().ops, 4);
  const at::Tensor x = at::randn({2, 8});
  EXPECT_TRUE(graph->Replay({x})[0].equal(mlp_({x})[0] + 1));
}

TEST_F(WrapTest, ATorchNnModule) {
  torch::nn::Sequential net(torch::nn::Linear(8, 16), torch::nn::GELU(), torch::nn::Dropout(0.5),
                            torch::nn::Linear(16, 4));
  net->eval();
  const Wrapped wrapped = Wrap(net, {.capture_after = 1});
  const Callable plain = [&](const Tensors& in) { return Tensors{net->forward(in[0])}; };
  for (int i = 0; i < 3; ++i) Expect(wrapped, plain, {at::randn({2, 8})});
  EXPECT_EQ(wrapped.Explain().replayed, 2);
  net->train();
  wrapped({at::randn({2, 8})});
  EXPECT_EQ(wrapped.Explain().as_is.at("training mode"), 1);
  net->eval();
  Expect(wrapped, plain, {at::randn({2, 8})});
  EXPECT_EQ(wrapped.Explain().replayed, 3);
  net->to(at::kDouble);
  for (int i = 0; i < 4; ++i) Expect(wrapped, plain, {at::randn({2, 8}, at::kDouble)});
  EXPECT_EQ(wrapped.Explain().replayed, 6);
}

TEST_F(WrapTest, SeveralResultsComeInOneRow) {
  torch::nn::LSTM lstm(torch::nn::LSTMOptions(4, 6).num_layers(2));
  lstm->eval();
  const Wrapped wrapped = Wrap(lstm, {.capture_after = 1});
  for (int i = 0; i < 3; ++i) {
    const at::Tensor x = at::randn({3, 2, 4});
    const auto [out, state] = lstm->forward(x);
    const Tensors got = wrapped({x});
    ASSERT_EQ(got.size(), 3U);
    EXPECT_TRUE(got[0].equal(out) && got[1].equal(std::get<0>(state)) && got[2].equal(std::get<1>(state)));
  }
  EXPECT_THROW(Wrap(torch::nn::Linear(4, 4))({at::ones({1, 4}), at::ones({1, 4})}), InvalidInput);
}

class WrapScriptTest : public WrapTest {
 protected:
  WrapScriptTest() {
    torch::jit::setTensorExprFuserEnabled(false);
    module_.register_parameter("weight", at::randn({8, 8}), false);
    module_.define(R"(
      def forward(self, x, mask: Optional[Tensor], more: Dict[str, List[Tensor]], scale: float = 1.0):
          y = torch.gelu(x @ self.weight) * scale
          if mask is not None:
              y = y.masked_fill(mask, 0.0)
          return {"y": (y, [y + 1] + more["rest"]), "x": (x, [x])}, 3
    )");
    module_.register_attribute("training", c10::BoolType::get(), true);
    module_.eval();
  }

  static std::vector<c10::IValue> Arguments(bool masked, double scale = 2.0) {
    c10::Dict<std::string, std::vector<at::Tensor>> more;
    more.insert("rest", std::vector<at::Tensor>{at::randn({2, 8}), at::randn({1})});
    const at::Tensor x = at::randn({2, 8});
    return {x, masked ? c10::IValue(x > 0) : c10::IValue(), more, scale};
  }

  static Tensors TensorsOf(const c10::IValue& value) {
    Tensors flat;
    value.visit([&](const c10::IValue& part) {
      if (part.isTensor()) flat.push_back(part.toTensor());
      return false;
    });
    return flat;
  }

  torch::jit::Module module_{"Net"};
};

TEST_F(WrapScriptTest, NestedValuesComeBackAsTheyAre) {
  const WrappedScript wrapped = Wrap(module_, {.capture_after = 1});
  for (int i = 0; i < 4; ++i) {
    for (const bool masked : {false, true}) {
      const std::vector<c10::IValue> arguments = Arguments(masked);
      const c10::IValue want = module_.forward(arguments);
      const c10::IValue got = i % 2 == 0 ? wrapped(arguments) : wrapped.Consume(arguments);
      EXPECT_EQ(*got.type(), *want.type());
      const Tensors a = TensorsOf(got), b = TensorsOf(want);
      ASSERT_EQ(a.size(), b.size());
      EXPECT_GE(a.size(), 5U);
      for (std::size_t k = 0; k < a.size(); ++k) EXPECT_TRUE(a[k].equal(b[k]));
      EXPECT_EQ(got.toTupleRef().elements()[1].toInt(), 3);
    }
  }
  wrapped(Arguments(false, 3.0));  // another number is another signature
  const WrapReport report = wrapped.Explain();
  EXPECT_EQ(report.name, "Net") << report.ToText();
  EXPECT_EQ(report.signatures.size(), 3U);
  EXPECT_EQ(report.replayed, 2 * 3);
}

TEST_F(WrapScriptTest, AModuleWithoutATrainingFlagIsCaptured) {  // as a frozen one is
  torch::jit::Module plain("Plain");
  plain.define(R"(
      def forward(self, x: Tensor):
          return x.exp() * 2, 1
    )");
  const WrappedScript wrapped = Wrap(plain, {.capture_after = 1});
  for (int i = 0; i < 3; ++i) {
    const at::Tensor x = at::randn({2, 8});
    EXPECT_TRUE(wrapped({x}).toTupleRef().elements()[0].toTensor().equal(x.exp() * 2));
  }
  EXPECT_EQ(wrapped.Explain().replayed, 2);
}

TEST_F(WrapScriptTest, TrainingModeRunsAsItIs) {
  module_.train();
  const WrappedScript wrapped = Wrap(module_, {.capture_after = 1});
  wrapped(Arguments(true));
  EXPECT_EQ(wrapped.Explain().as_is.at("training mode"), 1);
}

}  // namespace
}  // namespace livepool
