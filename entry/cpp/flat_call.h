// One call of something wrapped.
#pragma once

#include "livepool/capture/exec_graph.h"

namespace livepool {

// First the caller's own call, whose result is kept until it is taken; then, as a graph keeps the call to be checked
// with, a function of flat tensors.
class FlatCall {
 public:
  virtual ~FlatCall() = default;

  void RunFirst(const Tensors& inputs) {
    begun_ = true;
    First(inputs);
    returned_ = true;
  }
  // The tensors of the first run's result. Throws CaptureRefused if it holds what a replay cannot make.
  virtual Tensors FlatResult() = 0;
  virtual Tensors RunAgain(const Tensors& inputs) = 0;

  bool begun() const { return begun_; }
  bool threw() const { return begun_ && !returned_; }

 private:
  virtual void First(const Tensors& inputs) = 0;

  bool begun_ = false;
  bool returned_ = false;
};

}  // namespace livepool
