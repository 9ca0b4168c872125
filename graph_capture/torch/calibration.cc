#include "calibration.h"

#include "device_context.h"
#include "executor.h"
#include "known_run.h"
#include "livepool/pool/thread_state.h"

namespace livepool {
namespace {

class Calibrator final : public RunObserver {
 public:
  explicit Calibrator(const Program& program)
      : program_(program), writer_(program.device, CurrentStream(program.device)) {}

  // `run`: serves the ops; may be null.
  void SetServer(KnownRun* run) { run_ = run; }

  void BeforeOp(OpIndex op, const std::vector<at::Tensor>&) override {
    writer_.BeginOp();
    if (run_ != nullptr) run_->BeginOp(op, program_.graph.ops[static_cast<std::size_t>(op)].name);
  }

  void AfterOp(OpIndex op, const std::vector<at::Tensor>& values) override {
    for (const ValueId id : program_.graph.ops[static_cast<std::size_t>(op)].outputs) {
      const at::Tensor& value = values[static_cast<std::size_t>(id)];
      if (!value.defined() || value.device() != ToTorch(program_.device)) continue;
      const AllocationIndex allocation = writer_.LiveAt(value.storage().data());
      if (allocation < 0) continue;
      storage_of_.resize(writer_.trace().allocations.size(), -1);
      storage_of_[static_cast<std::size_t>(allocation)] = program_.graph.value(id).storage;
    }
    if (run_ != nullptr) run_->EndOp(op, "");
    writer_.EndOp();
  }

  TraceWriter& writer() { return writer_; }
  Calibration Take() {
    storage_of_.resize(writer_.trace().allocations.size(), -1);
    return {.trace = writer_.trace(), .storage_of = std::move(storage_of_)};
  }

 private:
  const Program& program_;
  TraceWriter writer_;
  KnownRun* run_ = nullptr;
  std::vector<StorageId> storage_of_;
};

}  // namespace

Calibration Calibrate(const Program& program, const std::vector<at::Tensor>& inputs, ArenaPool& pool,
                      const Trace* known) {
  Calibrator calibrator(program);
  {
    const RecordingScope recording(calibrator.writer());
    std::unique_ptr<KnownRun> run;
    if (known != nullptr) run = KnownRun::Begin(pool, {.run = *known}, calibrator.writer());
    calibrator.SetServer(run.get());
    RunProgram(program, inputs, calibrator);
  }
  return calibrator.Take();
}

}  // namespace livepool
