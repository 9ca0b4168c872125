#include "storage_views.h"

#include <ATen/ops/empty.h>
#include <c10/core/TensorOptions.h>

#include <utility>

namespace livepool {

at::Tensor OnStorage(c10::Storage storage, const Value& layout, TensorBits bits) {
  const auto dtype = static_cast<at::ScalarType>(layout.dtype);
  const c10::DispatchKeySet keys(c10::computeDispatchKey(dtype, c10::kStrided, storage.device()));
  at::Tensor tensor =
      at::detail::make_tensor<c10::TensorImpl>(std::move(storage), keys, c10::scalarTypeToTypeMeta(dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(layout.sizes, layout.strides, layout.storage_offset);
  if (bits.conj) tensor._set_conj(true);
  if (bits.neg) tensor._set_neg(true);
  return tensor;
}

at::Tensor AsBytes(c10::Storage storage) {
  const auto size = static_cast<std::int64_t>(storage.nbytes());
  return OnStorage(std::move(storage),
                   {.dtype = static_cast<std::int32_t>(at::kByte), .element_size = 1, .sizes = {size}, .strides = {1}},
                   {});
}

c10::Storage CopyOf(const c10::Storage& storage) {
  const at::Tensor bytes = AsBytes(storage);
  at::Tensor copy = at::empty(bytes.sizes(), bytes.options());
  copy.copy_(bytes);
  return copy.storage();
}

c10::Storage NotOwned(const c10::Storage& storage) {
  c10::DataPtr data(storage.mutable_data(), storage.device());
  return {c10::Storage::use_byte_size_t(), storage.nbytes(), std::move(data), /*allocator=*/nullptr,
          /*resizable=*/false};
}

at::Tensor NotOwned(const at::Tensor& tensor) {
  const Value layout{.dtype = static_cast<std::int32_t>(tensor.scalar_type()),
                     .sizes = tensor.sizes().vec(),
                     .strides = tensor.strides().vec(),
                     .storage_offset = tensor.storage_offset()};
  return OnStorage(NotOwned(tensor.storage()), layout, TensorBits::Of(tensor));
}

}  // namespace livepool
