// A LibTorch application that knows nothing of livepool; test programs run it under LD_PRELOAD.
//   torch_app cpu|cuda expected-allocator
// Exit code 0 if tensors compute and the allocator in use is the expected one: "torch" or "livepool".
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <c10/core/CPUAllocator.h>

#include <cstdio>
#include <string>

#ifdef LIVEPOOL_HAVE_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#endif

namespace {

bool IsLivepool(const std::string& device) {
#ifdef LIVEPOOL_HAVE_CUDA
  if (device == "cuda") return c10::cuda::CUDACachingAllocator::get()->name().starts_with("livepool");
#endif
  return c10::GetAllocator(c10::kCPU) != c10::GetDefaultCPUAllocator();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string device = argv[1];
  const at::Tensor a = at::full({64, 64}, 0.5, at::TensorOptions().device(device));
  const double sum = at::matmul(a, a).sum().item<double>();
  const bool livepool = IsLivepool(device);
  std::printf("sum %g, allocator %s\n", sum, livepool ? "livepool" : "torch");
  return sum == 64.0 * 64 * 64 / 4 && livepool == (std::string(argv[2]) == "livepool") ? 0 : 1;
}
