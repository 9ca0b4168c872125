#include "signature.h"

#include <sstream>

#include "device_context.h"
#include "livepool/base/error.h"
#include "op_facts.h"

namespace livepool {
namespace {

std::string Describe(const Value& value, DeviceId device) {
  std::ostringstream text;
  text << at::IntArrayRef(value.sizes) << " strides " << at::IntArrayRef(value.strides) << " "
       << static_cast<at::ScalarType>(value.dtype) << " on " << device.Name();
  return text.str();
}

std::string Describe(const at::Tensor& tensor) {
  std::ostringstream text;
  text << tensor.sizes() << " strides " << tensor.strides() << " " << tensor.scalar_type() << " on " << tensor.device();
  return text.str();
}

// Equal but for which storage it is. On every replay, for every tensor: nothing is allocated here.
bool SameSignature(const at::Tensor& tensor, const Value& captured) {
  return static_cast<std::int32_t>(tensor.scalar_type()) == captured.dtype &&
         tensor.sizes() == at::IntArrayRef(captured.sizes) && tensor.strides() == at::IntArrayRef(captured.strides) &&
         tensor.storage_offset() == captured.storage_offset;
}

}  // namespace

std::string ArgumentName(std::size_t i, const std::vector<std::string>& names) {
  return i < names.size() ? "argument '" + names[i] + "'" : "argument " + std::to_string(i);
}

void CheckInputs(const Program& program, const std::vector<at::Tensor>& inputs, const std::vector<std::string>& names) {
  const auto name = [&](std::size_t i) { return ArgumentName(i, names); };
  if (inputs.size() != program.inputs.size()) {
    throw ReplayMismatch("got " + std::to_string(inputs.size()) + " tensor arguments, captured with " +
                         std::to_string(program.inputs.size()));
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) throw ReplayMismatch(name(i) + " is undefined");
    if (const auto reason = RefusedKind(inputs[i])) throw ReplayMismatch(name(i) + " is " + *reason);
    const Value& captured = program.graph.value(program.inputs[i]);
    if (!SameSignature(inputs[i], captured) || inputs[i].device() != program.input_devices[i]) {
      const DeviceId device{program.input_devices[i].is_cuda() ? DeviceId::Kind::kCuda : DeviceId::Kind::kHost,
                            program.input_devices[i].is_cuda() ? program.input_devices[i].index() : 0};
      throw ReplayMismatch(name(i) + " is " + Describe(inputs[i]) + ", captured with " + Describe(captured, device) +
                           "; capture it for this case too");
    }
  }
  // The same arguments must share storage, with each other and with the state.
  const auto fail = [&](std::size_t i, const std::string& other, bool captured) {
    throw ReplayMismatch(name(i) + (captured ? " shared its storage with " : " now shares its storage with ") + other +
                         (captured ? " at capture, and does not now" : ", and did not at capture"));
  };
  const auto storage = [&](ValueId id) { return program.graph.value(id).storage; };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      const bool captured = storage(program.inputs[i]) == storage(program.inputs[k]);
      if (captured != inputs[i].storage().is_alias_of(inputs[k].storage())) fail(i, name(k), captured);
    }
    for (const StateTensor& state : program.state) {  // replaced state is CheckState's
      const bool captured = storage(program.inputs[i]) == storage(state.value);
      if (captured != inputs[i].storage().is_alias_of(state.tensor.storage()))
        fail(i, "state '" + state.name + "'", captured);
    }
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorBits now = TensorBits::Of(inputs[i]);
    const TensorBits captured = program.input_bits[i];
    if (now == captured) continue;
    const char* differs = now.conj != captured.conj ? "conj bit"
                          : now.neg != captured.neg ? "neg bit"
                                                    : "requires_grad";
    throw ReplayMismatch(name(i) + " has another " + differs + " than at the capture; capture it for this case too");
  }
}

void CheckSurroundings(const Program& program) {
  if (c10::GradMode::is_enabled()) {
    throw ReplayMismatch(
        "grad mode is enabled, and a replay computes no gradients; replay under torch.no_grad() or "
        "torch.inference_mode()");
  }
  if (!(ThreadModes::Current().autocast == program.modes[0].autocast)) {
    throw ReplayMismatch("autocast is not as at the capture; capture it for this case too");
  }
  if (const auto setting = GlobalSettings::Current().Differs(program.settings)) {
    throw ReplayMismatch(*setting + " is not as at the capture; capture it for this case too");
  }
}

void CheckState(const Program& program) {
  for (const StateTensor& state : program.state) {
    if (!state.used) continue;
    if (state.tensor.storage().data() == state.data && state.tensor.device() == state.device &&
        SameSignature(state.tensor, program.graph.value(state.value))) {
      continue;
    }
    throw ReplayMismatch("state '" + state.name + "' was replaced since the capture (it is " + Describe(state.tensor) +
                         " at another place now); capture again");
  }
}

}  // namespace livepool
