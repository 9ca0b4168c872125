#include "known_values.h"

namespace livepool {

Value KnownValues::Describe(const at::Tensor& tensor, StorageId storage) const {
  return {.storage = storage,
          .dtype = static_cast<std::int32_t>(tensor.scalar_type()),
          .element_size = static_cast<Bytes>(tensor.element_size()),
          .sizes = tensor.sizes().vec(),
          .strides = tensor.strides().vec(),
          .storage_offset = tensor.storage_offset(),
          .on_host = tensor.is_cpu() && device_.kind != DeviceId::Kind::kHost};
}

std::optional<ValueId> KnownValues::Find(const at::Tensor& tensor) const {
  const auto it = impls_.find(tensor.unsafeGetTensorImpl());
  if (it == impls_.end()) return std::nullopt;
  const std::optional<StorageId> storage = FindStorage(tensor);
  if (!storage || !(graph_.value(it->second.value) == Describe(tensor, *storage))) return std::nullopt;
  return it->second.value;
}

std::optional<StorageId> KnownValues::FindStorage(const at::Tensor& tensor) const {
  const auto it = storages_.find(tensor.storage().unsafeGetStorageImpl());
  if (it == storages_.end()) return std::nullopt;
  return it->second.storage;
}

ValueId KnownValues::Add(const at::Tensor& tensor, StorageKind kind) {
  c10::StorageImpl* impl = tensor.storage().unsafeGetStorageImpl();
  auto it = storages_.find(impl);
  if (it == storages_.end()) {
    const auto id = static_cast<StorageId>(graph_.storages.size());
    graph_.storages.push_back({.kind = kind, .size = static_cast<Bytes>(impl->nbytes())});
    it = storages_.emplace(impl, StorageEntry{tensor.storage().getWeakStorageImpl(), id}).first;
  }
  const auto value = static_cast<ValueId>(graph_.values.size());
  graph_.values.push_back(Describe(tensor, it->second.storage));
  Bind(tensor, value);
  return value;
}

ValueId KnownValues::AddAnew(const at::Tensor& tensor) {
  storages_.erase(tensor.storage().unsafeGetStorageImpl());
  return Add(tensor, StorageKind::kIntermediate);
}

std::optional<ValueId> KnownValues::NewestOn(StorageId storage, at::ScalarType dtype) const {
  const auto it = newest_.find({storage, dtype});
  if (it == newest_.end()) return std::nullopt;
  return it->second;
}

void KnownValues::Bind(const at::Tensor& tensor, ValueId value) {
  impls_.insert_or_assign(tensor.unsafeGetTensorImpl(),
                          Impl{.weak = decltype(Impl::weak)(tensor.getIntrusivePtr()), .value = value});
  if (!tensor.is_conj() && !tensor.is_neg()) newest_[{graph_.value(value).storage, tensor.scalar_type()}] = value;
}

}  // namespace livepool
