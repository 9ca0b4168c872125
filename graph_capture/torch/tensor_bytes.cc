#include "tensor_bytes.h"

#include <ATen/ops/view_as_real.h>

#include <algorithm>
#include <array>
#include <cmath>
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

std::optional<Deviation> FindDeviation(const at::Tensor& replay, const at::Tensor& eager, const at::Tensor& again,
                                       double slack) {
  const std::array tensors{OnHost(replay), OnHost(eager), OnHost(again)};
  std::array<at::Tensor, 3> numbers;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    numbers[i] = (tensors[i].is_complex() ? at::view_as_real(tensors[i]) : tensors[i]).to(at::kDouble).contiguous();
  }
  const auto count = static_cast<std::size_t>(numbers[0].numel());
  const std::size_t size = count == 0 ? 0 : tensors[0].nbytes() / count;  // a complex number is two elements
  const auto bytes = [&](std::size_t which, std::size_t i) {
    return static_cast<const std::byte*>(tensors[which].const_data_ptr()) + i * size;
  };
  const auto distance = [&](std::size_t a, std::size_t b, std::size_t i) {
    const double by = std::abs(numbers[a].const_data_ptr<double>()[i] - numbers[b].const_data_ptr<double>()[i]);
    return std::isfinite(by) ? by : std::numeric_limits<double>::infinity();
  };
  Deviation deviation;
  for (std::size_t i = 0; i < count; ++i) {
    if (const double noise = distance(1, 2, i); std::isfinite(noise))
      deviation.noise = std::max(deviation.noise, noise);
  }
  bool found = false;
  for (std::size_t i = 0; i < count; ++i) {
    if (std::memcmp(bytes(0, i), bytes(1, i), size) == 0) continue;
    const bool stable = std::memcmp(bytes(1, i), bytes(2, i), size) == 0;
    const double by = distance(0, 1, i);
    if (!stable && by <= slack * deviation.noise) continue;
    found = true;
    deviation.by = std::max(deviation.by, by);
  }
  return found ? std::optional(deviation) : std::nullopt;
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
