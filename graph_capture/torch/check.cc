#include "check.h"

#include <algorithm>
#include <sstream>

#include "device_context.h"
#include "tensor_bytes.h"

namespace livepool {
namespace {

// Outputs, then what the pass wrote to.
using Results = std::vector<at::Tensor>;

std::optional<std::string> Difference(const Results& replay, const Results& eager, const Results& again,
                                      std::size_t outputs) {
  constexpr double kSlack = 4;
  if (replay.size() != eager.size() || eager.size() != again.size())
    return "the number of results differs from eager's";
  for (std::size_t i = 0; i < replay.size(); ++i) {
    if (SameBytes(replay[i], eager[i])) continue;
    std::ostringstream text;
    text << (i < outputs ? "output " : "written tensor ") << (i < outputs ? i : i - outputs);
    if (replay[i].scalar_type() != eager[i].scalar_type() || replay[i].sizes() != eager[i].sizes()) {
      text << " has another dtype or shape than eager's";
      return text.str();
    }
    const std::optional<Deviation> deviation = FindDeviation(replay[i], eager[i], again[i], kSlack);
    if (!deviation) continue;
    text << " differs from eager's by up to " << deviation->by << " (two eager runs differ by " << deviation->noise
         << ")";
    return text.str();
  }
  return std::nullopt;
}

}  // namespace

CheckedRun RunChecked(const Program& program, const std::vector<at::Tensor>& inputs,
                      const std::function<std::vector<at::Tensor>()>& replay,
                      const std::function<std::vector<at::Tensor>()>& eager) {
  // Generators belong to the whole process: they are touched only if the pass draws.
  std::optional<GeneratorStates> generators;
  if (program.random) generators = GeneratorStates::Save(program.device, program.generators);
  const SavedTensors written = SavedTensors::OfWritten(program, inputs);
  const auto restore = [&] {
    if (generators) generators->Restore();
    written.Restore();
  };
  // An output may be a view of what the pass writes to, which the next run changes; one on loan may end with it.
  const bool keep_copies = !written.empty() || program.graph.outputs_in_arena;
  std::vector<at::Tensor> outputs;  // of the run that came last, so that those which alias written tensors do
  const auto run = [&](const std::function<std::vector<at::Tensor>()>& fn) {
    restore();
    try {
      outputs = fn();
    } catch (...) {
      restore();
      throw;
    }
    Results results = outputs;
    if (keep_copies) {
      for (at::Tensor& result : results) result = result.detach().clone();
    }
    for (at::Tensor& each : written.Now()) results.push_back(std::move(each));
    return results;
  };

  const Results of_replay = run(replay);
  const std::vector<at::Tensor> replayed = outputs;
  const Results of_eager = run(eager);
  if (SameBytes(of_replay, of_eager)) return {.outputs = keep_copies ? outputs : replayed};
  const Results again = run(eager);
  std::optional<std::string> fault = Difference(of_replay, of_eager, again, outputs.size());
  if (fault) restore();  // the caller runs the callable instead, from the same start
  return {.outputs = std::move(outputs), .fault = std::move(fault)};
}

}  // namespace livepool
