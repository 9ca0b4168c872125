// Plans on disk: what they are good for, and what becomes of bad files.
#include "livepool/saved_plans.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/rand_like.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "counting_upstream.h"
#include "livepool/livepool.h"

namespace livepool {
namespace {

using testing::CountingUpstream;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class SavedPlansTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    upstream_ = &CountingUpstream::Install();
    Install(DeviceId::Kind::kHost);
  }
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("livepool_saved_plans_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    path_ = folder_ / "net.plans";
  }
  void TearDown() override { fs::remove_all(folder_); }

  // As another process would begin. Without plans a signature is captured at its third call.
  Wrapped New(Callable callable) const {
    return Wrap(std::move(callable), {.capture_after = 3, .state = state_, .name = "net"});
  }
  Wrapped New() const { return New(net_); }

  // Saves the plans of the net for inputs of so many rows each.
  void SaveFor(const std::vector<std::int64_t>& rows) const {
    const Wrapped wrapped = Wrap(net_, {.capture_after = 1, .state = state_});
    for (const std::int64_t each : rows) wrapped({at::randn({each, 64})});
    ASSERT_EQ(wrapped.SavePlans(path_), rows.size());
  }

  std::string Text() const {
    std::ostringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }
  void Write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }
  // Replaces the first `from` in the file.
  void Edit(const std::string& from, const std::string& to) const {
    std::string text = Text();
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    Write(text.replace(at, from.size(), to));
  }

  template <typename Refusal>
  void ExpectRefused(const std::string& why) const {
    try {
      New().LoadPlans(path_);
      FAIL() << "not refused; expected: " << why;
    } catch (const Refusal& error) {
      EXPECT_THAT(error.what(), HasSubstr("plans in '" + path_ + "': "));
      EXPECT_THAT(error.what(), HasSubstr(why));
    }
  }

  // The file with the first `from` replaced is refused; afterwards it is what it was.
  template <typename Refusal>
  void ExpectEditRefused(const std::string& from, const std::string& to, const std::string& why) const {
    const std::string good = Text();
    Edit(from, to);
    ExpectRefused<Refusal>(why);
    Write(good);
  }

  static GraphReport OnlyGraph(const Wrapped& wrapped) { return wrapped.Explain().signatures.at(0).graph.value(); }

  inline static CountingUpstream* upstream_ = nullptr;
  c10::NoGradGuard no_grad_;
  const at::Tensor in_ = at::randn({64, 2048}), between_ = at::randn({2048, 2048}), out_ = at::randn({2048, 8});
  const NamedTensors state_{{"in", in_}, {"between", between_}, {"out", out_}};
  const Callable net_ = [this](const Tensors& x) {
    at::Tensor hidden = at::gelu(at::matmul(x[0], in_));
    for (int i = 0; i < 3; ++i) hidden = hidden + at::gelu(at::matmul(hidden, between_));
    return Tensors{at::matmul(hidden, out_)};
  };
  fs::path folder_;
  std::string path_;
};

TEST_F(SavedPlansTest, TheFirstCallHasItsMemoryFromTheArena) {
  SaveFor({32});
  const Tensors x{at::randn({32, 64})};
  Tensors want, got;
  const std::size_t as_it_is = upstream_->PeakOf([&] { want = net_(x); });
  const Wrapped wrapped = New();
  EXPECT_EQ(wrapped.LoadPlans(path_), 1U);
  const std::int64_t hits = AllPools()[0]->Stats().hits;
  const std::size_t planned = upstream_->PeakOf([&] { got = wrapped(x); });
  EXPECT_TRUE(got[0].equal(want[0]));
  EXPECT_GT(AllPools()[0]->Stats().hits, hits);
  EXPECT_GT(as_it_is, 3 * 32 * 2048 * 4U);
  EXPECT_LT(planned, as_it_is / 20);
  EXPECT_TRUE(OnlyGraph(wrapped).as_saved);
  EXPECT_EQ(OnlyGraph(wrapped).not_as_saved, "");
  EXPECT_THAT(wrapped.Explain().ToText(), HasSubstr("plan from a file"));
  EXPECT_THAT(wrapped.Explain().ToText(), HasSubstr("1 plans loaded from a file, 1 of them in use"));
  // What is served from slots is recorded like all else.
  const Wrapped unplanned = Wrap(net_, {.capture_after = 1, .state = state_});
  unplanned(x);
  EXPECT_EQ(OnlyGraph(wrapped).eager_live_peak_bytes, OnlyGraph(unplanned).eager_live_peak_bytes);
  EXPECT_EQ(OnlyGraph(wrapped).sum_bytes, OnlyGraph(unplanned).sum_bytes);
  EXPECT_EQ(OnlyGraph(wrapped).arena_bytes, OnlyGraph(unplanned).arena_bytes);
}

TEST_F(SavedPlansTest, TheCheckOfTheFirstReplayToo) {
  SaveFor({32});
  const Wrapped wrapped = New();
  wrapped.LoadPlans(path_);
  wrapped({at::randn({32, 64})});
  const Tensors x{at::randn({32, 64})};
  const Tensors want = net_(x);
  Tensors got;
  EXPECT_LT(upstream_->PeakOf([&] { got = wrapped(x); }), 32 * 2048);
  EXPECT_TRUE(got[0].equal(want[0]));
  EXPECT_TRUE(OnlyGraph(wrapped).checked);
  EXPECT_EQ(OnlyGraph(wrapped).misses, 0);
}

TEST_F(SavedPlansTest, TheArenaShrinksToTheReplaysPlan) {
  SaveFor({512});
  TrimArenas();
  const Wrapped wrapped = New();
  wrapped.LoadPlans(path_);
  for (int i = 0; i < 3; ++i) wrapped({at::randn({512, 64})});
  const Bytes plan = OnlyGraph(wrapped).arena_bytes;
  EXPECT_LT(plan, OnlyGraph(wrapped).eager_live_peak_bytes);
  EXPECT_LT(AllPools()[0]->MappedBytes(), plan + 2_MiB);
}

TEST_F(SavedPlansTest, WhatIsLoadedIsWhatWasSaved) {
  SaveFor({32, 5});
  const SavedPlans saved = SavedPlans::Read(path_, state_);
  ASSERT_EQ(saved.entries().size(), 2U);
  EXPECT_EQ(saved.entries()[1].signature, "Float[5, 64]");
  EXPECT_EQ(saved.entries()[0].plan->ops[1], "aten::gelu -> Float[32, 2048]");
  const std::string text = Text();
  saved.Write(path_, state_);
  EXPECT_EQ(Text(), text);
}

TEST_F(SavedPlansTest, EachSignatureHasItsPlanAndOthersAreCapturedAsEver) {
  SaveFor({32, 5});
  const Wrapped wrapped = New();
  EXPECT_EQ(wrapped.LoadPlans(path_), 2U);
  for (const std::int64_t rows : {5, 32, 7}) {
    for (int i = 0; i < 4; ++i) {
      const Tensors x{at::randn({rows, 64})};
      EXPECT_TRUE(wrapped(x)[0].equal(net_(x)[0])) << rows;
      if (i > 0) continue;
      EXPECT_EQ(wrapped.Explain().signatures.back().graph.has_value(), rows != 7);
    }
  }
  const WrapReport report = wrapped.Explain();
  ASSERT_EQ(report.signatures.size(), 3U);
  for (const SignatureReport& each : report.signatures) {
    EXPECT_EQ(each.graph.value().as_saved, each.signature != "Float[7, 64]") << each.signature;
    EXPECT_EQ(each.graph->not_as_saved, "");
  }
}

TEST_F(SavedPlansTest, PlansThatWereNotNeededAreSavedAgain) {
  SaveFor({32, 5});
  const Wrapped wrapped = New();
  wrapped.LoadPlans(path_);
  wrapped({at::randn({5, 64})});
  EXPECT_EQ(wrapped.SavePlans(path_), 2U);
  EXPECT_EQ(New().LoadPlans(path_), 2U);
}

TEST_F(SavedPlansTest, AnotherPassIsPlannedAnewAndRight) {
  SaveFor({32});
  const Callable other = [this](const Tensors& x) {
    at::Tensor hidden = at::gelu(at::matmul(x[0], in_));
    for (int i = 0; i < 3; ++i) hidden = hidden + at::relu(at::matmul(hidden, between_));
    return Tensors{at::matmul(hidden, out_)};
  };
  const Wrapped wrapped = New(other);
  wrapped.LoadPlans(path_);
  for (int i = 0; i < 3; ++i) {
    const Tensors x{at::randn({32, 64})};
    EXPECT_TRUE(wrapped(x)[0].equal(other(x)[0]));
  }
  EXPECT_FALSE(OnlyGraph(wrapped).as_saved);
  EXPECT_EQ(OnlyGraph(wrapped).not_as_saved,
            "op 3 was aten::gelu -> Float[32, 2048] and is aten::relu -> Float[32, 2048]");
}

TEST_F(SavedPlansTest, ARefusalBeforeTheOrdinaryTimeIsNotTheLastWord) {
  SaveFor({32});
  const at::Tensor hidden = at::zeros({32, 64});  // neither argument nor state
  int calls = 0, refused = 0;
  const auto refuses_until = [&](int last) {
    return [&, last](const Tensors& x) {
      if (++calls > last) return net_(x);
      ++refused;
      return net_({x[0] + hidden});
    };
  };
  const Tensors x{at::randn({32, 64})};
  const at::Tensor want = net_(x)[0];
  const Wrapped once = New(refuses_until(1));
  once.LoadPlans(path_);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(once(x)[0].equal(want)) << i;
  EXPECT_EQ(once.Explain().signatures[0].refusal, "");
  EXPECT_TRUE(OnlyGraph(once).as_saved);
  calls = refused = 0;
  const Wrapped always = New(refuses_until(100));
  always.LoadPlans(path_);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(always(x)[0].equal(want)) << i;
  EXPECT_THAT(always.Explain().signatures[0].refusal, HasSubstr("hidden input"));
  EXPECT_EQ(refused, 4);
}

TEST_F(SavedPlansTest, OtherAllocationsOfTheSameOpsArePlannedAnew) {
  SaveFor({32});
  const std::string size = std::to_string(32 * 2048 * 4);
  Edit("\"size\":[" + size, "\"size\":[" + std::to_string(32 * 2048 * 4 - 64));  // of the recorded run: only a miss
  const Wrapped missed = New();
  missed.LoadPlans(path_);
  const Tensors x{at::randn({32, 64})};
  EXPECT_TRUE(missed(x)[0].equal(net_(x)[0]));
  EXPECT_TRUE(OnlyGraph(missed).as_saved);
  Edit("\"alignment\":64", "\"alignment\":32");
  const Wrapped planned = New();
  planned.LoadPlans(path_);
  EXPECT_TRUE(planned(x)[0].equal(net_(x)[0]));
  EXPECT_FALSE(OnlyGraph(planned).as_saved);
  EXPECT_THAT(OnlyGraph(planned).not_as_saved, HasSubstr("allocations are not"));
}

TEST_F(SavedPlansTest, APassThatDrawsAndWrites) {
  const at::Tensor counter = at::zeros({1 << 16});
  const auto noisy = [&](const Tensors& x) {
    counter.add_(1);
    return Tensors{(x[0] + at::rand_like(x[0])) * counter};
  };
  const WrapOptions options{.capture_after = 1, .state = {{"counter", counter}}};
  const Tensors x{at::randn({1 << 16})};
  {
    const Wrapped wrapped = Wrap(noisy, options);
    wrapped(x);
    wrapped.SavePlans(path_);
  }
  const Wrapped wrapped = Wrap(noisy, options);
  wrapped.LoadPlans(path_);
  counter.zero_();
  at::manual_seed(3);
  Tensors got;
  for (int i = 0; i < 3; ++i) got = wrapped(x);
  EXPECT_TRUE(OnlyGraph(wrapped).as_saved);
  counter.zero_();
  at::manual_seed(3);
  Tensors want;
  for (int i = 0; i < 3; ++i) want = noisy(x);
  EXPECT_TRUE(got[0].equal(want[0]));
}

// ---- Refusals

TEST_F(SavedPlansTest, NothingToSaveIsAnError) { EXPECT_THROW(New().SavePlans(path_), InvalidInput); }

TEST_F(SavedPlansTest, WhatIsNoFileOfPlansIsRefused) {
  ExpectRefused<InvalidInput>("there is no such file");
  fs::create_directory(path_);
  ExpectRefused<InvalidInput>("it is a directory");
  fs::remove(path_);
  Write("");
  ExpectRefused<InvalidInput>("it is empty");
  Write(std::string(1 << 20, '['));
  ExpectRefused<InvalidInput>("nested too deeply");
  for (const char* text :
       {"id,lower,upper,size\n0,0,1,64\n", "{\"format\": \"another\"}\n", "[1]\n", "\x80\x02}q\n", "\n\n"}) {
    Write(text);
    ExpectRefused<InvalidInput>("it is no file of livepool's plans");
  }
}

TEST_F(SavedPlansTest, OtherFormatsTorchesAndModulesAreRefused) {
  SaveFor({32});
  ExpectEditRefused<PlansRefused>("\"version\":1", "\"version\":2", "format 2, and this livepool reads format 1");
  ExpectEditRefused<PlansRefused>("\"torch\":\"2.", "\"torch\":\"1.", "saved under torch 1.");
  ExpectEditRefused<PlansRefused>(
      "between Float[2048, 2048] on cpu", "between Float[2048, 2048] on cuda",
      "'between Float[2048, 2048] on cuda' stood where this one has 'between Float[2048, 2048] on cpu'");
  ExpectEditRefused<PlansRefused>(
      "\"in Float[64, 2048] on cpu\",", "",
      "'between Float[2048, 2048] on cpu' stood where this one has 'in Float[64, 2048] on cpu'");
}

TEST_F(SavedPlansTest, CountsThatAreNotTrueAreRefused) {
  SaveFor({32});
  for (const char* plans : {"0", "2", "-1", "99999999999"}) {
    SCOPED_TRACE(plans);
    ExpectEditRefused<InvalidInput>("\"plans\":1", std::string("\"plans\":") + plans, "");
  }
  ExpectEditRefused<InvalidInput>("\"recorded\":{\"ops\":", "\"recorded\":{\"ops\":1",
                                  "not as many ops as there are names");
  ExpectEditRefused<InvalidInput>("\"size\":[", "\"size\":[64,", "'size' is not as long as the columns beside it");
  ExpectEditRefused<InvalidInput>("\"size\":[", "\"size\":[18446744073709551615,", "");
  ExpectEditRefused<InvalidInput>("\"call\":[", "\"call\":[[[[1]]],", "nested too deeply");
}

TEST_F(SavedPlansTest, ACutOffFileIsRefusedWhereverItIsCut) {
  SaveFor({32});
  const std::string text = Text();
  for (std::size_t length = 0; length + 1 < text.size(); length += 1 + text.size() / 200) {
    Write(text.substr(0, length));
    EXPECT_THROW(New().LoadPlans(path_), InvalidInput) << length;
  }
}

TEST_F(SavedPlansTest, APlanThatOverlapsIsRefused) {
  SaveFor({32});
  const std::string text = Text();
  const std::size_t begin = text.find("\"offset\":[") + 10;
  const std::size_t end = text.find(']', begin);
  const auto count = std::count(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                text.begin() + static_cast<std::ptrdiff_t>(end), ',') +
                     1;
  std::string zeros = "0";
  for (std::ptrdiff_t i = 1; i < count; ++i) zeros += ",0";
  Write(text.substr(0, begin) + zeros + text.substr(end));
  ExpectRefused<InvalidPlan>("overlap");
}

// Whatever the bytes: an error of ours, or plans that can be served.
TEST_F(SavedPlansTest, DamagedFilesAreRefusedOrHarmless) {
  SaveFor({8});
  const std::string good = Text();
  const Tensors x{at::randn({8, 64})};
  const at::Tensor want = net_(x)[0];
  int served = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
    std::string text = good;
    for (std::size_t edits = 1 + below(3); edits > 0; --edits) {
      const std::size_t at = below(text.size());
      const std::size_t length = std::min(below(40), text.size() - at);
      switch (below(5)) {
        case 0:
          text[at] = static_cast<char>(below(256));
          break;
        case 1:
          text.erase(at, length);
          break;
        case 2:
          text.insert(at, text.substr(below(text.size()), 40));
          break;
        case 3:
          text.insert(at, std::array{"-", "9", "e", "[", "\"", "99999999999999999999", "0.5", "null"}[below(8)]);
          break;
        default:  // another digit: most likely to be read
          if (const std::size_t digit = text.find_first_of("0123456789", at); digit != std::string::npos)
            text[digit] = static_cast<char>('0' + below(10));
      }
    }
    Write(text);
    const Wrapped wrapped = New();
    try {
      wrapped.LoadPlans(path_);
    } catch (const Error& error) {
      ASSERT_THAT(error.what(), HasSubstr(path_)) << seed;
      continue;
    }
    ++served;
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(wrapped(x)[0].equal(want)) << seed;
  }
  EXPECT_GT(served, 20);  // the test reaches what lies behind the reader
}

TEST_F(SavedPlansTest, AFailedWriteLeavesWhatWasThere) {
  SaveFor({32});
  const std::string good = Text();
  const SavedPlans plans = SavedPlans::Read(path_, state_);
  EXPECT_THROW(plans.Write((folder_ / "no such folder" / "x").string(), state_), InvalidInput);
  EXPECT_THROW(plans.Write(folder_.string(), state_), InvalidInput);
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  const rlimit small{.rlim_cur = 100, .rlim_max = limit.rlim_max};
  std::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_THROW(plans.Write(path_, state_), InvalidInput);
  ::setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(Text(), good);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1) << "a part is left";
}

}  // namespace
}  // namespace livepool
