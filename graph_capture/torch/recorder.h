// Records the ops of a pass through a RecordFunction hook on the calling thread.
#pragma once

#include <ATen/record_function.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "device_context.h"
#include "finish_program.h"
#include "known_run.h"
#include "known_values.h"
#include "livepool/graph/trace.h"
#include "program.h"

namespace livepool {

// Usage: construct with the inputs and the state, Run the callable once, Finish with its outputs.
//
// Note [What becomes an op]
// The hook sees every dispatcher call, nested ones too. A looked-through composite (see op_facts.h) is left
// out and its inner calls are the ops; any other operator is one op, and the calls inside it belong to it. A
// composite that turns out to make or use a tensor behind the dispatcher's back is recorded as one op after
// all, and what was recorded inside it is dropped.
//
// Note [Refusals]
// A rule that is broken inside the hook cannot throw there (RecordFunction swallows exceptions), so the
// first reason is kept and Finish throws it. Rules of docs/design.md, section "Capture".
class Recorder {
 public:
  Recorder(DeviceId device, const std::vector<at::Tensor>& inputs, std::vector<StateTensor> state);

  // Runs `fn` on the calling thread with the hook installed. What fn throws passes through. Upstream serves it, or an
  // arena of `pool`, if `known` is not null and says how the run should go.
  std::vector<at::Tensor> Run(const std::function<std::vector<at::Tensor>()>& fn, ArenaPool& pool,
                              const SavedPlan* known);
  // The program, without dead ops. Throws CaptureRefused.
  Program Finish(const std::vector<at::Tensor>& outputs, const FinishOptions& options);

  const Trace& trace() const { return writer_.trace(); }
  // One text for each op of the trace, those included that Finish removes: "aten::addmm -> Float[2, 8]".
  const std::vector<std::string>& ops() const { return ops_; }
  // The allocations of the pass that `outputs` live in.
  std::vector<AllocationIndex> AllocationsOf(const std::vector<at::Tensor>& outputs) const;

  // The generators that ops were given by name, and their states before the first op that drew from each.
  const GeneratorStates& generators_before() const { return generators_; }
  const std::vector<at::Generator>& generators() const { return program_.generators; }

  // Refuses the capture for `reason`; the first reason counts. May be called from inside fn.
  void Refuse(const std::string& reason);
  // The same, unless the caller is the kernel of an op: false then.
  bool RefuseHostRead(const std::string& reason);
  // Why the calling thread cannot record now; nothing if it can.
  static std::optional<std::string> WhyNotNow();
  // The recorder that runs on the calling thread, or null.
  static Recorder* Current();

 private:
  // An operator call that has begun and not ended.
  struct Frame {
    c10::OperatorHandle op;
    bool composite = false;
    bool hides_tensors = false;  // a composite that must become one op
    bool grows = false;          // a storage that it returns has become larger
    std::size_t code_mark = 0;   // code.size() at its begin
    Instruction instruction;
    std::vector<ValueId> inputs;
    std::vector<ValueId> writes;
  };

  static std::unique_ptr<at::ObserverContext> OnBegin(const at::RecordFunction& fn);
  static void OnEnd(const at::RecordFunction& fn, at::ObserverContext*);
  void Begin(const at::RecordFunction& fn);
  void End(const at::RecordFunction& fn);

  void EndOp(const Frame& frame, const at::RecordFunction& fn);
  void TakeArguments(Frame& frame, c10::ArrayRef<const c10::IValue> arguments);
  // The value of an argument; none if it is unknown, and then a frame or the capture has been marked.
  std::optional<ValueId> Use(Frame& frame, const at::Tensor& tensor, std::size_t argument);
  void NoteReadOf(Frame& frame, ValueId value, std::size_t argument);
  void TakeResults(Frame& frame, c10::ArrayRef<const c10::IValue> results);
  ValueId Define(Frame& frame, const at::Tensor& tensor);
  // Index of the calling thread's modes in program_.modes.
  std::size_t NoteModes();
  void NoteGenerator(const at::Generator& generator);
  void Emit(Frame&& frame);
  void EmitAliasOf(StorageId storage, const at::Tensor& tensor);
  void FreezeHostWritten(const at::Tensor& tensor);
  ValueId AddConstant(const at::Tensor& tensor);
  void Hide(const std::string& what);

  const DeviceId device_;
  const StreamHandle stream_;
  Program program_;
  KnownValues known_;
  TraceWriter writer_;
  std::vector<std::string> ops_;
  KnownRun* known_run_ = nullptr;              // while it serves the run
  std::vector<Frame> frames_;                  // looked-through composites, and at the end at most one op
  int inside_op_ = 0;                          // calls nested in the op on top of frames_
  std::unordered_set<StorageId> unwritten_;    // made by aten::empty* or grown, and no recorded op wrote them yet
  std::unordered_set<StorageId> host_memory_;  // of these, those that share memory with numpy or the like
  std::unordered_set<const c10::TensorImpl*> callers_;  // of the arguments and the state
  GeneratorStates generators_;  // those that ops were given, as they were before the first of them
  std::string refusal_;
  bool saw_event_ = false;
};

}  // namespace livepool
