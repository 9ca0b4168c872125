// livepool's errors as Python exceptions.
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace livepool {

// Each error type of livepool/base/error.h becomes an exception of `m`; torch's own errors stay torch's.
void RegisterErrors(py::module& m);

}  // namespace livepool
