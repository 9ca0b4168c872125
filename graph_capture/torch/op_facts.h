// What is known of an operator, and of a tensor, before it is recorded.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <string>
#include <vector>

#include "livepool/pool/device.h"

namespace livepool {

// "aten::add.Tensor".
std::string OpName(const c10::OperatorHandle& op);

// True if the inner calls of `op` become the ops of the graph: an aten operator with a
// CompositeImplicitAutograd kernel and none of its own for the device. Operators of other namespaces are
// always one op: TORCH_LIBRARY's m.def("op", &fn) registers user kernels as CompositeImplicitAutograd, and
// looking through one would lose the kernel.
bool IsLookedThrough(const c10::OperatorHandle& op, DeviceId device);

// True if an output of the op may overwrite an input that dies: tagged pointwise, not random, with a kernel of
// its own for the device.
bool IsPointwise(const c10::OperatorHandle& op, DeviceId device);
// True if the op must run though nobody reads its outputs: random, asserting, of another namespace.
bool HasEffect(const c10::OperatorHandle& op);
// Communication between processes: its buffers belong to work that goes on after the op.
bool IsCollective(const c10::OperatorHandle& op);
bool IsRandom(const c10::OperatorHandle& op);
// True if the outputs depend on the bytes of the arguments and on nothing else.
bool IsPure(const c10::OperatorHandle& op);
// True if results depend on the bytes of the arguments in another way than through the bytes of tensors. Of indexing
// this holds only with masks, which IsIndexing leaves to the caller to find out.
bool IsGuard(const c10::OperatorHandle& op);
bool IsIndexing(const c10::OperatorHandle& op);
// True if the op gives a tensor whose bytes nobody has written: aten::empty and its kin.
bool MakesUnwritten(const c10::OperatorHandle& op);
// Positions of arguments that the op writes with these arguments, though its schema does not say so: the running
// statistics of a batch norm that trains.
std::vector<std::size_t> HiddenWrites(const c10::OperatorHandle& op, c10::ArrayRef<const c10::IValue> arguments);
// True if the op looks at the sizes and kind of its tensors only, never at their bytes.
bool ReadsMetadataOnly(const c10::OperatorHandle& op);
// Whether argument `i` is written, and whether it may be the storage of a result.
bool Writes(const c10::OperatorHandle& op, std::size_t i);
bool IsViewOf(const c10::OperatorHandle& op, std::size_t i);

// Why `tensor` cannot be part of a graph: a subclass, sparse, nested, … ; none if it can.
std::optional<std::string> RefusedKind(const at::Tensor& tensor);
// Why the calling thread's state cannot be captured (dispatch modes, functorch transforms, grad mode).
std::optional<std::string> RefusedThreadState();
// "[2, 3] float32 on cpu".
std::string DescribeForPeople(const at::Tensor& tensor);

}  // namespace livepool
