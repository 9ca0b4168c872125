#include "served_outputs.h"

#include <ATen/ops/as_strided.h>

#include <algorithm>
#include <unordered_map>

#include "storage_views.h"

namespace livepool {

ServedOutputs::ServedOutputs(const Program& program, const std::vector<at::Tensor>& outputs) : program_(&program) {
  std::unordered_map<const c10::StorageImpl*, std::size_t> seen;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    Output& output =
        outputs_.emplace_back(Output{.value = program.graph.outputs[i], .bits = TensorBits::Of(outputs[i])});
    const StorageId storage = program.graph.value(output.value).storage;
    const auto lies_in = [&](ValueId value) { return program.graph.value(value).storage == storage; };
    if (const auto state = std::find_if(program.state.begin(), program.state.end(),
                                        [&](const auto& each) { return lies_in(each.value); });
        state != program.state.end()) {
      const auto same =
          std::find_if(state, program.state.end(), [&](const auto& each) { return each.value == output.value; });
      output.state = (same != program.state.end() ? same : state) - program.state.begin();
      continue;
    }
    if (const auto input = std::find_if(program.inputs.begin(), program.inputs.end(), lies_in);
        input != program.inputs.end()) {
      // The argument itself rather than another one on its storage.
      const auto same = std::find(program.inputs.begin(), program.inputs.end(), output.value);
      output.input = (same != program.inputs.end() ? same : input) - program.inputs.begin();
      continue;
    }
    const auto [it, is_new] = seen.emplace(outputs[i].storage().unsafeGetStorageImpl(), bytes_.size());
    if (is_new) bytes_.push_back(NotOwned(outputs[i].storage()));
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

std::vector<at::Tensor> ServedOutputs::Copy(const std::vector<at::Tensor>& inputs) const {
  return Make(inputs, [](const c10::Storage& bytes) { return CopyOf(bytes); });
}

std::vector<at::Tensor> ServedOutputs::Lend(const std::vector<at::Tensor>& inputs, Lender& lender) const {
  return Make(inputs, [&](const c10::Storage& bytes) { return lender.LendLaunched(bytes); });
}

std::vector<at::Tensor> ServedOutputs::Make(const std::vector<at::Tensor>& inputs,
                                            const std::function<c10::Storage(const c10::Storage&)>& place) const {
  std::vector<c10::Storage> storages;
  storages.reserve(bytes_.size());
  for (const c10::Storage& bytes : bytes_) storages.push_back(place(bytes));
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
