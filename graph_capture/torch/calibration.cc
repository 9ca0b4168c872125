#include "calibration.h"

#include "device_context.h"
#include "executor.h"
#include "livepool/pool/thread_state.h"

namespace livepool {
namespace {

class Calibrator final : public RunObserver {
 public:
  explicit Calibrator(const Program& program)
      : program_(program), writer_(program.device, CurrentStream(program.device)) {}

  void BeforeOp(OpIndex, const std::vector<at::Tensor>&) override { writer_.BeginOp(); }

  void AfterOp(OpIndex op, const std::vector<at::Tensor>& values) override {
    for (const ValueId id : program_.graph.ops[static_cast<std::size_t>(op)].outputs) {
      const at::Tensor& value = values[static_cast<std::size_t>(id)];
      if (!value.defined() || value.device() != ToTorch(program_.device)) continue;
      const AllocationIndex allocation = writer_.LiveAt(value.storage().data());
      if (allocation < 0) continue;
      storage_of_.resize(writer_.trace().allocations.size(), -1);
      storage_of_[static_cast<std::size_t>(allocation)] = program_.graph.value(id).storage;
    }
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
  std::vector<StorageId> storage_of_;
};

}  // namespace

Calibration Calibrate(const Program& program, const std::vector<at::Tensor>& inputs) {
  Calibrator calibrator(program);
  {
    const RecordingScope recording(calibrator.writer());
    RunProgram(program, inputs, calibrator);
  }
  return calibrator.Take();
}

}  // namespace livepool
