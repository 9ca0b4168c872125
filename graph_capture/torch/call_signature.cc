#include "livepool/capture/call_signature.h"

#include <sstream>

#include "livepool/base/error.h"
#include "modes.h"
#include "op_facts.h"
#include "program.h"
#include "settings.h"

namespace livepool {
namespace {

// dtype, device type, device index, storage offset, bits, the first tensor on the same storage, dimensions.
constexpr std::size_t kHeaderWords = 7;
constexpr std::size_t kDeviceIndexWord = 2;

}  // namespace

CallSignature CallSignature::Of(const std::vector<at::Tensor>& inputs) {
  if (const auto reason = RefusedThreadState()) throw CaptureRefused(*reason);
  Words words{static_cast<std::int64_t>(inputs.size())};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const at::Tensor& tensor = inputs[i];
    if (!tensor.defined()) throw CaptureRefused("argument " + std::to_string(i) + " is undefined");
    if (const auto reason = RefusedKind(tensor))
      throw CaptureRefused("argument " + std::to_string(i) + " is " + *reason);
    const TensorBits bits = TensorBits::Of(tensor);
    std::size_t first = 0;
    while (!inputs[first].storage().is_alias_of(tensor.storage())) ++first;
    for (const std::int64_t word :
         {static_cast<std::int64_t>(tensor.scalar_type()), static_cast<std::int64_t>(tensor.device().type()),
          static_cast<std::int64_t>(tensor.device().index()), tensor.storage_offset(),
          (bits.conj ? 1L : 0L) | (bits.neg ? 2L : 0L) | (bits.requires_grad ? 4L : 0L),
          static_cast<std::int64_t>(first), tensor.dim()}) {
      words.push_back(word);
    }
    words.append(tensor.sizes().begin(), tensor.sizes().end());
    words.append(tensor.strides().begin(), tensor.strides().end());
  }
  for (const ThreadModes::Autocast& autocast : ThreadModes::Current().autocast) {
    words.push_back(autocast.enabled ? static_cast<std::int64_t>(autocast.dtype) : -1);
  }
  const GlobalSettings settings = GlobalSettings::Current();
  words.append(settings.values().begin(), settings.values().end());
  return CallSignature(std::move(words));
}

std::size_t CallSignature::Hash() const {
  std::uint64_t hash = 0;
  for (const std::int64_t word : words_) {
    hash = (hash ^ static_cast<std::uint64_t>(word)) * 0x9E3779B97F4A7C15;  // 2^64 / golden ratio: Fibonacci hashing
    hash ^= hash >> 32;
  }
  return hash;
}

std::vector<std::int64_t> CallSignature::Portable() const {
  std::vector<std::int64_t> words(words_.begin(), words_.end());
  std::size_t at = 1;
  for (std::int64_t i = 0; i < words_[0]; ++i) {
    words[at + kDeviceIndexWord] = 0;
    at += kHeaderWords + 2 * static_cast<std::size_t>(words[at + kHeaderWords - 1]);
  }
  return words;
}

std::vector<std::string> CallSignature::ToTexts() const {
  std::vector<std::string> texts;
  const std::int64_t* word = words_.data() + 1;
  for (std::int64_t i = 0; i < words_[0]; ++i) {
    const auto dims = static_cast<std::size_t>(word[kHeaderWords - 1]);
    std::ostringstream text;
    text << c10::toString(static_cast<c10::ScalarType>(word[0])) << at::IntArrayRef(word + kHeaderWords, dims);
    texts.push_back(text.str());
    word += kHeaderWords + 2 * dims;
  }
  return texts;
}

}  // namespace livepool
