// Where an arena's bytes come from.
#pragma once

#include <cstddef>
#include <string>

#include "livepool/base/units.h"

namespace livepool {

// A stream of the device, as the driver names it (CUstream); null on the host and for the default stream.
using StreamHandle = void*;

// Address space and physical memory of one device. Thread-safe.
// Contract, checked by tests/allocator/backend/backend_conformance.h:
//  - Reserve returns an address that is a multiple of Granularity(); the range is never given back, so
//    that deleters can dispatch by address for the life of the process.
//  - Map and Unmap take non-empty ranges inside one reservation, in multiples of Granularity(): Map where
//    nothing is mapped yet, Unmap where everything is. What is unmapped need not be what one Map mapped.
//  - Map has the strong guarantee: when it throws, nothing is mapped that was not before.
//  - Bytes of a range survive until its Unmap; after Unmap + Map they are unspecified.
class Backend {
 public:
  virtual ~Backend() = default;

  // "host", "cuda:0": for messages.
  virtual std::string Name() const = 0;
  // Bytes; a power of two. Every mapping is a multiple of it.
  virtual Bytes Granularity() const = 0;
  // Bytes; a power of two. What tensors of this device are rounded and aligned to (64 host, 512 CUDA).
  virtual Bytes Alignment() const = 0;

  // Reserves `size` > 0 bytes of address space, rounded up, without memory behind it. Throws OutOfMemory.
  virtual std::byte* Reserve(Bytes size) = 0;
  // Puts memory behind [address, address + size). Throws OutOfMemory.
  virtual void Map(std::byte* address, Bytes size) = 0;
  // Takes the memory away again. The caller has made sure that nobody uses it.
  virtual void Unmap(std::byte* address, Bytes size) noexcept = 0;
  // False while memory may not be taken away, as during a CUDA graph capture: nobody calls Unmap then, but for
  // undoing a Map that has failed.
  virtual bool MayUnmap() const { return true; }
  // Writes `value` into every byte, ordered on `stream`. The range is mapped; it may have any alignment.
  virtual void Fill(std::byte* address, Bytes size, std::byte value, StreamHandle stream) noexcept = 0;
};

}  // namespace livepool
