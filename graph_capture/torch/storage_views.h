// Tensors put together from a storage and a layout, past the dispatcher.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include "program.h"

namespace livepool {

// A tensor with the dtype, sizes, strides and offset of `layout` on `storage`.
at::Tensor OnStorage(c10::Storage storage, const Value& layout, TensorBits bits);
// The whole storage as a flat tensor of bytes.
at::Tensor AsBytes(c10::Storage storage);
// A storage of upstream's with the same bytes, copied on the current stream.
c10::Storage CopyOf(const c10::Storage& storage);
// The bytes of `storage`, without a reference to it.
c10::Storage NotOwned(const c10::Storage& storage);
// A tensor of the same layout on the same bytes, which it does not hold.
at::Tensor NotOwned(const at::Tensor& tensor);

}  // namespace livepool
