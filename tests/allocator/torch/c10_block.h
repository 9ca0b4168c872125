// A c10::DataPtr as the allocator conformance suite keeps it.
#pragma once

#include <c10/core/Allocator.h>
#include <gtest/gtest.h>

#include "allocator/allocator_conformance.h"

namespace livepool {

// The context alone, as whoever copies it keeps it: it is the address, and the deleter takes it.
inline Block OwnedBy(c10::DataPtr data) {
  EXPECT_EQ(data.get(), data.get_context());
  const c10::DeleterFnPtr deleter = data.get_deleter();
  return {data.release_context(), deleter};
}

}  // namespace livepool
