// Moves a pass's cursor along the ops of a run.
#pragma once

#include <vector>

#include "executor.h"
#include "livepool/pool/pass.h"

namespace livepool {

class SlotServer final : public RunObserver {
 public:
  // `in_place_inputs`: for each op the input whose slot its output takes, or -1.
  SlotServer(Pass& pass, const std::vector<ValueId>& in_place_inputs)
      : pass_(pass), in_place_inputs_(in_place_inputs) {}

  void BeforeOp(OpIndex op, const std::vector<at::Tensor>& values) override {
    const ValueId input = in_place_inputs_[static_cast<std::size_t>(op)];
    pass_.BeginOp(op, input < 0 ? nullptr : HeldAlone(values[static_cast<std::size_t>(input)]));
  }
  void AfterOp(OpIndex, const std::vector<at::Tensor>&) override { pass_.EndOp(); }

 private:
  // Where the storage of `tensor` starts, if nobody but the run's own list of values holds either.
  static const void* HeldAlone(const at::Tensor& tensor) {
    return tensor.defined() && tensor.use_count() == 1 && tensor.storage().use_count() == 1 ? tensor.storage().data()
                                                                                            : nullptr;
  }

  Pass& pass_;
  const std::vector<ValueId>& in_place_inputs_;
};

}  // namespace livepool
