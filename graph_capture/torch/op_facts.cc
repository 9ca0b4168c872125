#include "op_facts.h"

#include <ATen/core/enum_tag.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

namespace livepool {
namespace {

using c10::DispatchKey;

DispatchKey KeyOf(DeviceId device) {
  return device.kind == DeviceId::Kind::kHost ? DispatchKey::CPU : DispatchKey::CUDA;
}

bool IsAten(const c10::OperatorHandle& op) { return op.schema().name().starts_with("aten::"); }

// Composite kernels that read an argument through data_ptr and call other ops with what they found: looked through,
// these values would be the capture's for ever.
constexpr std::array<std::string_view, 7> kReadOnHost{"aten::lstm.data",
                                                      "aten::gru.data",
                                                      "aten::rnn_tanh.data",
                                                      "aten::rnn_relu.data",
                                                      "aten::_pad_packed_sequence",
                                                      "aten::ctc_loss.Tensor",
                                                      "aten::tensor_split.tensor_indices_or_sections"};

bool ReadsOnHost(const c10::OperatorHandle& op) {
  return std::find(kReadOnHost.begin(), kReadOnHost.end(), OpName(op)) != kReadOnHost.end();
}

struct Kind {
  DispatchKey key;
  const char* name;
};

// Each of these means that the tensor's bytes are not what its sizes say, or that Python code runs for it.
constexpr std::array kRefusedKeys{
    Kind{DispatchKey::Python, "a tensor subclass with __torch_dispatch__"},
    Kind{DispatchKey::FuncTorchBatched, "a functorch (vmap) tensor"},
    Kind{DispatchKey::FuncTorchGradWrapper, "a functorch (grad) tensor"},
    Kind{DispatchKey::Functionalize, "a functional tensor"},
};

}  // namespace

std::string OpName(const c10::OperatorHandle& op) {
  const std::string& overload = op.schema().overload_name();
  return op.schema().name() + (overload.empty() ? "" : "." + overload);
}

bool IsLookedThrough(const c10::OperatorHandle& op, DeviceId device) {
  return IsAten(op) && !ReadsOnHost(op) && op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd) &&
         !op.hasKernelForDispatchKey(KeyOf(device));
}

bool IsPointwise(const c10::OperatorHandle& op, DeviceId device) {
  return IsAten(op) && op.hasTag(at::Tag::pointwise) && !IsRandom(op) && op.hasKernelForDispatchKey(KeyOf(device));
}

bool IsCollective(const c10::OperatorHandle& op) {
  const std::string& name = op.schema().name();
  return name.starts_with("c10d::") || name.starts_with("_c10d_functional");
}

bool IsRandom(const c10::OperatorHandle& op) { return op.hasTag(at::Tag::nondeterministic_seeded); }

bool IsPure(const c10::OperatorHandle& op) {
  return IsAten(op) && !IsRandom(op) && !MakesUnwritten(op) && !op.schema().returns().empty();
}

bool HasEffect(const c10::OperatorHandle& op) {
  if (!IsAten(op) || IsRandom(op) || IsGuard(op)) return true;
  return op.schema().returns().empty();  // aten::_assert_async and the like
}

bool IsIndexing(const c10::OperatorHandle& op) {
  return op.schema().name() == "aten::index" || op.schema().name() == "aten::_unsafe_index";
}

bool IsGuard(const c10::OperatorHandle& op) {
  if (!IsAten(op) || ReadsOnHost(op) || op.hasTag(at::Tag::data_dependent_output)) return true;
  if (op.schema().name() == "aten::_pack_padded_sequence") return true;  // sizes depend on lengths, and no tag says so
  return op.hasTag(at::Tag::dynamic_output_shape) && !IsIndexing(op);
}

bool MakesUnwritten(const c10::OperatorHandle& op) {
  const std::string& name = op.schema().name();
  return name.starts_with("aten::empty") || name.starts_with("aten::new_empty");
}

std::vector<std::size_t> HiddenWrites(const c10::OperatorHandle& op, c10::ArrayRef<const c10::IValue> arguments) {
  const std::string& name = op.schema().name();
  if (name != "aten::native_batch_norm" && name != "aten::cudnn_batch_norm" && name != "aten::miopen_batch_norm")
    return {};
  const std::optional<int> training = op.schema().argumentIndexWithName("training");
  if (!training || !arguments[static_cast<std::size_t>(*training)].toBool()) return {};
  std::vector<std::size_t> written;
  for (const char* statistic : {"running_mean", "running_var"}) {
    const std::optional<int> i = op.schema().argumentIndexWithName(statistic);
    if (i && arguments[static_cast<std::size_t>(*i)].isTensor()) written.push_back(static_cast<std::size_t>(*i));
  }
  return written;
}

bool ReadsMetadataOnly(const c10::OperatorHandle& op) {
  const std::string& name = op.schema().name();
  return name.starts_with("aten::empty") || name.starts_with("aten::new_") || name.ends_with("_like") ||
         name.starts_with("aten::sym_") || name == "aten::_has_compatible_shallow_copy_type";
}

bool Writes(const c10::OperatorHandle& op, std::size_t i) {
  if (op.schema().name() == "aten::detach_") return false;  // for autograd; torch.tensor(...) ends with it
  const c10::AliasInfo* alias = op.schema().arguments()[i].alias_info();
  return alias != nullptr && alias->isWrite();
}

bool IsViewOf(const c10::OperatorHandle& op, std::size_t i) {
  const c10::AliasInfo* alias = op.schema().arguments()[i].alias_info();
  return alias != nullptr && !Writes(op, i);
}

std::optional<std::string> RefusedKind(const at::Tensor& tensor) {
  for (const Kind& kind : kRefusedKeys) {
    if (tensor.key_set().has(kind.key)) return kind.name;
  }
  if (tensor.is_quantized()) return "a quantised tensor";
  if (tensor.is_nested()) return "a nested tensor";
  if (tensor.layout() != c10::kStrided) return "a sparse or opaque tensor";
  if (!tensor.has_storage()) return "a tensor without storage";
  return std::nullopt;
}

std::optional<std::string> RefusedThreadState() {
  if (c10::GradMode::is_enabled())
    return "grad mode is enabled; capture under torch.no_grad() or torch.inference_mode()";
  if (c10::impl::TorchDispatchModeTLS::stack_len() > 0) return "a TorchDispatchMode is active";
  if (c10::impl::tls_is_dispatch_key_included(DispatchKey::FuncTorchDynamicLayerFrontMode)) {
    return "a functorch transform (vmap, grad, …) is active";
  }
  return std::nullopt;
}

std::string DescribeForPeople(const at::Tensor& tensor) {
  std::ostringstream text;
  text << tensor.sizes() << " " << tensor.scalar_type() << " on " << tensor.device();
  return text.str();
}

}  // namespace livepool
