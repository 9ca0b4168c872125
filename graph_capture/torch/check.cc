#include "check.h"

#include <algorithm>
#include <sstream>

#include "device_context.h"
#include "tensor_bytes.h"

namespace livepool {
namespace {

// Outputs, then what the pass wrote to.
using Results = std::vector<at::Tensor>;

std::optional<std::string> Difference(const Results& replay, const Results& eager, const Results& again, std::size_t outputs) {
  constexpr double kSlack = 4;
  if (replay.size() != eager.size()) return "the replay gave another number of results than eager";
  for (std::size_t i = 0; i < replay.size(); ++i) {
    if (SameBytes(replay[i], eager[i])) continue;
    std::ostringstream text;
    text << (i < outputs ? "output " : "written tensor ") << (i < outputs ? i : i - outputs);
    if (replay[i].scalar_type() != eager[i].scalar_type() || replay[i].sizes() != eager[i].sizes()) {
      text << " has another dtype or shape than eager's";
      return text.str();
    }
    const double by = MaxDifference(replay[i], eager[i]);
    const double noise = MaxDifference(eager[i], again[i]);
    if (by <= kSlack * noise) continue;
    text << " differs from eager's by up to " << by << " (two eager runs differ by " << noise << ")";
    return text.str();
  }
  return std::nullopt;
}

}  // namespace

CheckedRun RunChecked(const Program& program, const std::vector<at::Tensor>& inputs,
                      const std::function<std::vector<at::Tensor>()>& replay,
                      const std::function<std::vector<at::Tensor>()>& eager) {
  const GeneratorStates generators = GeneratorStates::Save(program.device, program.generators);
  const SavedTensors written = SavedTensors::OfWritten(program, inputs);
  const auto run = [&](const std::function<std::vector<at::Tensor>()>& fn) {
    generators.Restore();
    written.Restore();
    Results results = fn();
    // An output may be a view of what the pass writes to, which the next run changes.
    if (!written.empty()) {
      for (at::Tensor& result : results) result = result.detach().clone();
    }
    for (at::Tensor& each : written.Now()) results.push_back(std::move(each));
    return results;
  };

  Results of_replay = run(replay);
  std::vector<at::Tensor> outputs;
  // The caller gets the tensors of the run that comes last, so that outputs which alias written tensors do.
  Results of_eager = run([&] { return outputs = eager(); });
  const std::size_t count = outputs.size();
  if (of_replay.size() == of_eager.size() && SameBytes(of_replay, of_eager)) return {.outputs = std::move(outputs)};
  const Results again = run([&] { return outputs = eager(); });
  std::optional<std::string> fault = Difference(of_replay, of_eager, again, count);
  if (fault) {
    // The caller runs the callable instead, from the same start.
    generators.Restore();
    written.Restore();
  }
  return {.outputs = std::move(outputs), .fault = std::move(fault)};
}

}  // namespace livepool
