#include "served_outputs.h"

#include <ATen/ops/as_strided.h>
#include <ATen/ops/empty.h>
#include <c10/core/TensorOptions.h>

#include <algorithm>
#include <unordered_map>

namespace livepool {
namespace {

at::Tensor OnStorage(c10::Storage storage, const Value& value, TensorBits bits) {
  const auto dtype = static_cast<at::ScalarType>(value.dtype);
  const c10::DispatchKeySet keys(c10::computeDispatchKey(dtype, c10::kStrided, storage.device()));
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), keys, c10::scalarTypeToTypeMeta(dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(value.sizes, value.strides, value.storage_offset);
  if (bits.conj) tensor._set_conj(true);
  if (bits.neg) tensor._set_neg(true);
  return tensor;
}

at::Tensor AsBytes(c10::Storage storage) {
  const auto size = static_cast<std::int64_t>(storage.nbytes());
  return OnStorage(std::move(storage), {.dtype = static_cast<std::int32_t>(at::kByte), .element_size = 1, .sizes = {size}, .strides = {1}}, {});
}

// The bytes of `storage`, without a reference to it.
c10::Storage StorageNotOwned(const c10::Storage& storage) {
  c10::DataPtr data(storage.mutable_data(), storage.device());
  return {c10::Storage::use_byte_size_t(), storage.nbytes(), std::move(data), /*allocator=*/nullptr, /*resizable=*/false};
}

}  // namespace

at::Tensor NotOwned(const at::Tensor& tensor) {
  const Value layout{.dtype = static_cast<std::int32_t>(tensor.scalar_type()),
                     .sizes = tensor.sizes().vec(),
                     .strides = tensor.strides().vec(),
                     .storage_offset = tensor.storage_offset()};
  return OnStorage(StorageNotOwned(tensor.storage()), layout, TensorBits::Of(tensor));
}

ServedOutputs::ServedOutputs(const Program& program, const std::vector<at::Tensor>& outputs) : program_(&program) {
  std::unordered_map<const c10::StorageImpl*, std::size_t> seen;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    Output& output = outputs_.emplace_back(Output{.value = program.graph.outputs[i], .bits = TensorBits::Of(outputs[i])});
    const StorageId storage = program.graph.value(output.value).storage;
    const auto lies_in = [&](ValueId value) { return program.graph.value(value).storage == storage; };
    if (const auto state = std::find_if(program.state.begin(), program.state.end(), [&](const auto& each) { return lies_in(each.value); });
        state != program.state.end()) {
      const auto same = std::find_if(state, program.state.end(), [&](const auto& each) { return each.value == output.value; });
      output.state = (same != program.state.end() ? same : state) - program.state.begin();
      continue;
    }
    if (const auto input = std::find_if(program.inputs.begin(), program.inputs.end(), lies_in); input != program.inputs.end()) {
      // The argument itself rather than another one on its storage.
      const auto same = std::find(program.inputs.begin(), program.inputs.end(), output.value);
      output.input = (same != program.inputs.end() ? same : input) - program.inputs.begin();
      continue;
    }
    const auto [it, is_new] = seen.emplace(outputs[i].storage().unsafeGetStorageImpl(), bytes_.size());
    if (is_new) bytes_.push_back(AsBytes(StorageNotOwned(outputs[i].storage())));
    output.bytes = it->second;
  }
}

at::Tensor ServedOutputs::PartOf(const at::Tensor& owner, ValueId owner_value, const Output& output) const {
  if (owner_value == output.value) return owner;
  const Value& value = program_->graph.value(output.value);
  // Through the dispatcher: such a view shares the version counter of its base.
  const bool same_kind = owner.scalar_type() == static_cast<at::ScalarType>(value.dtype) &&
                         owner.is_conj() == output.bits.conj && owner.is_neg() == output.bits.neg;
  if (same_kind) {
    return at::as_strided(owner, value.sizes, value.strides, value.storage_offset);
  }
  return OnStorage(owner.storage(), value, output.bits);
}

std::vector<at::Tensor> ServedOutputs::Make(const std::vector<at::Tensor>& inputs, bool copy) const {
  std::vector<c10::Storage> storages;
  for (const at::Tensor& bytes : bytes_) {
    if (!copy) {
      storages.push_back(bytes.storage());
      continue;
    }
    at::Tensor fresh = at::empty(bytes.sizes(), bytes.options());
    fresh.copy_(bytes);
    storages.push_back(fresh.storage());
  }
  std::vector<at::Tensor> made;
  made.reserve(outputs_.size());
  for (const Output& output : outputs_) {
    if (output.state >= 0) {
      const StateTensor& state = program_->state[static_cast<std::size_t>(output.state)];
      made.push_back(PartOf(state.tensor, state.value, output));
    } else if (output.input >= 0) {
      const auto input = static_cast<std::size_t>(output.input);
      made.push_back(PartOf(inputs[input], program_->inputs[input], output));
    } else {
      made.push_back(OnStorage(storages[output.bytes], program_->graph.value(output.value), output.bits));
    }
  }
  return made;
}

}  // namespace livepool
