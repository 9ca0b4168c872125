// Captures a small function in a LibTorch application and replays it from an arena.
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/relu.h>
#include <livepool/livepool.h>

#include <cstdio>

int main() {
  livepool::Install();
  const c10::InferenceMode inference;
  const at::Tensor weight = at::randn({32, 32});
  const auto fn = [&](const livepool::Tensors& in) {
    return livepool::Tensors{at::matmul(at::relu(at::matmul(in[0], weight)), weight)};
  };
  const auto graph = livepool::Capture(fn, {at::randn({8, 32})}, {.state = {{"weight", weight}}});
  const at::Tensor other = at::randn({8, 32});
  const bool equal = graph->Replay({other})[0].equal(fn({other})[0]);
  const livepool::GraphReport report = graph->Report();
  std::printf("equal %d, hits %lld, misses %lld\n", equal, static_cast<long long>(report.hits),
              static_cast<long long>(report.misses));
  return equal && report.hits > 0 && report.misses == 0 ? 0 : 1;
}
