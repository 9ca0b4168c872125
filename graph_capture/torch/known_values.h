// From live tensors to the values of the graph that is being recorded.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "livepool/graph/op_graph.h"
#include "livepool/pool/device.h"

namespace livepool {

// Note [Weak references]
// Tensors are told apart by the addresses of their TensorImpl and StorageImpl. An address is reused once its
// object is gone, so a weak reference is held on both: it keeps the address from being reused, and does not
// keep the memory alive. A strong one would lengthen the lifetimes that are being recorded.
class KnownValues {
 public:
  // `device`: of the pass.
  KnownValues(OpGraph& graph, DeviceId device) : graph_(graph), device_(device) {}

  // The value of `tensor`, if its impl and storage are known and its geometry is still that of the value.
  std::optional<ValueId> Find(const at::Tensor& tensor) const;
  // The storage of `tensor`, if known.
  std::optional<StorageId> FindStorage(const at::Tensor& tensor) const;
  // Makes a new value for `tensor`; its storage becomes `kind` if it is not known yet.
  ValueId Add(const at::Tensor& tensor, StorageKind kind);
  // The same for a tensor whose bytes start anew: it gets a new storage, though its StorageImpl is known.
  ValueId AddAnew(const at::Tensor& tensor);
  // Makes `value` what Find returns for `tensor`.
  void Bind(const at::Tensor& tensor, ValueId value);
  // The newest value on `storage` of this dtype and without lazy conjugation or negation, if there is one: a view
  // that was made outside the dispatcher can be made from it.
  std::optional<ValueId> NewestOn(StorageId storage, at::ScalarType dtype) const;

 private:
  struct Impl {
    c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> weak;
    ValueId value;
  };
  struct StorageEntry {
    c10::weak_intrusive_ptr<c10::StorageImpl> weak;
    StorageId storage;
  };

  Value Describe(const at::Tensor& tensor, StorageId storage) const;

  OpGraph& graph_;
  const DeviceId device_;
  std::unordered_map<const c10::TensorImpl*, Impl> impls_;
  std::unordered_map<const c10::StorageImpl*, StorageEntry> storages_;
  std::map<std::pair<StorageId, at::ScalarType>, ValueId> newest_;
};

}  // namespace livepool
