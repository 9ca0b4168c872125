#include "tensor_bytes.h"

#include <ATen/TensorOperators.h>

#include <cstring>
#include <limits>

namespace livepool {
namespace {

// On the host, side by side, without lazy conjugation or negation.
at::Tensor OnHost(const at::Tensor& tensor) {
  return tensor.detach().to(at::kCPU).resolve_conj().resolve_neg().contiguous();
}

}  // namespace

bool SameBytes(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  const at::Tensor x = OnHost(a);
  const at::Tensor y = OnHost(b);
  return x.nbytes() == 0 || std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

bool SameBytes(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!SameBytes(a[i], b[i])) return false;
  }
  return true;
}

double MaxDifference(const at::Tensor& a, const at::Tensor& b) {
  if (a.numel() == 0 || a.is_complex()) return SameBytes(a, b) ? 0 : std::numeric_limits<double>::infinity();
  const at::Tensor difference = (OnHost(a).to(at::kDouble) - OnHost(b).to(at::kDouble)).abs().max();
  const double value = difference.item<double>();
  return value == value ? value : std::numeric_limits<double>::infinity();
}

std::uint64_t HashBytes(const std::vector<at::Tensor>& tensors) {
  // FNV-1a over 64-bit words (Fowler, Noll, Vo), with the tail as one word.
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  const auto mix = [&](std::uint64_t word) { hash = (hash ^ word) * 0x100000001B3ULL ^ (hash >> 29); };
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor host = OnHost(tensor);
    const auto* bytes = static_cast<const std::byte*>(host.const_data_ptr());
    std::size_t left = host.nbytes();
    mix(left);
    for (; left > 0;) {
      std::uint64_t word = 0;
      const std::size_t n = left < sizeof word ? left : sizeof word;
      std::memcpy(&word, bytes, n);
      mix(word);
      bytes += n;
      left -= n;
    }
  }
  return hash;
}

SavedTensors SavedTensors::OfWritten(const Program& program, const std::vector<at::Tensor>& inputs) {
  SavedTensors saved;
  const auto save = [&](const at::Tensor& tensor) { saved.saved_.emplace_back(tensor, tensor.detach().clone()); };
  for (const std::size_t i : program.written_inputs) save(inputs[i]);
  for (const at::Tensor& tensor : program.written_state) save(tensor);
  return saved;
}

void SavedTensors::Restore() const {
  for (const auto& [tensor, copy] : saved_) tensor.detach().copy_(copy);
}

std::vector<at::Tensor> SavedTensors::Now() const {
  std::vector<at::Tensor> now;
  for (const auto& each : saved_) now.push_back(each.first.detach().clone());
  return now;
}

}  // namespace livepool
