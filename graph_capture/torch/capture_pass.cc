#include "capture_pass.h"

#include <ATen/autocast_mode.h>

#include <initializer_list>

#include "device_context.h"
#include "livepool/base/error.h"
#include "order_program.h"
#include "recorder.h"
#include "tensor_bytes.h"

namespace livepool {
namespace {

// A generator that nobody but the capture holds was made inside the pass: each pass would make and seed another.
void RefuseOwnGenerators(const Program& program, std::initializer_list<const GeneratorStates*> holders) {
  for (const at::Generator& generator : program.generators) {
    std::size_t ours = 1;
    for (const GeneratorStates* each : holders) ours += each->Contains(generator) ? 1U : 0U;
    for (const Instruction& instruction : program.code) {
      for (const Argument& argument : instruction.arguments) {
        if (argument.constant.isGenerator() && argument.constant.toGenerator() == generator) ++ours;
      }
    }
    if (generator.getIntrusivePtr().use_count() <= ours)
      throw CaptureRefused("the pass makes a random generator of its own");
  }
}

// The calibration starts where the recorded pass started (generators at `before`), and leaves everything as that
// pass left it (at `after`).
Calibration CalibrateAndRestore(const Program& program, const Tensors& inputs, const GeneratorStates& before,
                                const GeneratorStates& after, ArenaPool& pool, const Trace* known) {
  const SavedTensors written = SavedTensors::OfWritten(program, inputs);
  const ModesScope modes(program.modes[0]);
  // Generators belong to the whole process: they are touched only if the pass draws.
  bool same_draws = before.Equal(after);
  const auto restore = [&] {
    written.Restore();
    if (!program.random) return;
    same_draws = GeneratorStates::Save(program.device, program.generators).Equal(after);
    after.Restore();
  };
  Calibration calibration;
  if (program.random) before.Restore();
  try {
    calibration = Calibrate(program, inputs, pool, known);
  } catch (const GuardFailed& error) {
    restore();
    throw CaptureRefused(std::string("a second run takes another path: ") + error.what());
  } catch (...) {
    restore();
    throw;
  }
  restore();
  if (!same_draws) {
    throw CaptureDisturbed(
        "the pass changes a random generator otherwise than by the ops that draw from it "
        "(manual_seed, set_state or fork_rng inside, or another thread draws meanwhile)");
  }
  return calibration;
}

}  // namespace

CapturedPass CapturePass(const Callable& fn, const Tensors& inputs, const CaptureOptions& options, ArenaPool& pool) {
  const DeviceId device = pool.device();
  const Bytes alignment = pool.backend().Alignment();
  const SavedPlan* const known = options.plan.get();
  if (CapturingStream(device))
    throw CaptureRefused("the stream is being captured into a CUDA graph; capture with livepool before");
  std::vector<StateTensor> state;
  for (const auto& [name, tensor] : options.state) state.push_back({.name = name, .tensor = tensor});

  CapturedPass pass;
  GeneratorStates before = GeneratorStates::Save(device, {});
  at::autocast::clear_cache();  // a weight that was converted before the pass would be a hidden input
  Recorder recorder(device, inputs, std::move(state));
  Tensors outputs = recorder.Run([&] { return fn(inputs); }, pool, known);
  const GeneratorStates after = GeneratorStates::Save(device, recorder.generators());
  const bool fixed = options.mode == CaptureOptions::Mode::kRehearsal ||
                     (options.mode == CaptureOptions::Mode::kGraph && device.kind == DeviceId::Kind::kCuda);
  pass.program = recorder.Finish(outputs, {.fold_constants = options.fold_constants,
                                           .fixed_addresses = fixed,
                                           .outputs_in_arena = options.outputs_in_arena});
  before.Add(recorder.generators_before());
  pass.sum_bytes = recorder.trace().SumBytes(alignment);
  pass.eager_live_peak_bytes = recorder.trace().LivePeak(alignment, recorder.AllocationsOf(outputs));
  outputs.clear();

  if (known != nullptr) pass.not_as_saved = DifferenceOfOps(known->ops, recorder.ops());
  const bool follows = known != nullptr && pass.not_as_saved.empty();
  pass.calibration =
      CalibrateAndRestore(pass.program, inputs, before, after, pool, follows ? &known->calibration : nullptr);
  pass.saved = {.ops = recorder.ops(),
                .recorded = AllocationsOf(recorder.trace()),
                .calibration = AllocationsOf(pass.calibration.trace)};
  if (options.order_for_memory) OrderForMemory(pass.program, pass.calibration, options.in_place, alignment);
  RefuseOwnGenerators(pass.program, {&before, &after, &recorder.generators_before()});
  return pass;
}

}  // namespace livepool
