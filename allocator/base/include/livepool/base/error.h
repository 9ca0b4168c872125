// The errors that livepool throws. Each message says what was wrong, where, and what to do.
// At the edge to torch they are translated once (allocator/torch, entry/python).
#pragma once

#include <stdexcept>
#include <string>

#include "livepool/base/units.h"

namespace livepool {

// Base of all errors that livepool throws itself.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A file, a command line or an environment variable is malformed.
class InvalidInput : public Error {
 public:
  using Error::Error;
};

// A plan breaks a rule (see plan/validate.h): it is never served.
class InvalidPlan : public Error {
 public:
  using Error::Error;
};

// A file of plans is sound, but of another format, torch, device or module than this one. The message says which.
class PlansRefused : public Error {
 public:
  using Error::Error;
};

// Memory could not be had. At the torch edge it becomes c10::OutOfMemoryError.
class OutOfMemory : public Error {
 public:
  OutOfMemory(const std::string& what, Bytes requested) : Error(what), requested_(requested) {}
  // Bytes that were asked for.
  Bytes requested() const { return requested_; }

 private:
  Bytes requested_;
};

// More passes run at once than a device has arenas for, or the process is a forked child: all goes upstream then.
class ArenasExhausted : public OutOfMemory {
 public:
  using OutOfMemory::OutOfMemory;
};

// An arena cannot be trimmed now: a pass runs on it, or a CUDA graph over it lives or is being captured.
class ArenaInUse : public Error {
 public:
  using Error::Error;
};

// The callable cannot be captured: its graph would be wrong. The message names the op.
class CaptureRefused : public Error {
 public:
  using Error::Error;
};

// What the capture saw may have come from outside the pass (another thread drew random numbers, for one): it is not
// known to be good, and another attempt may succeed.
class CaptureDisturbed : public CaptureRefused {
 public:
  using CaptureRefused::CaptureRefused;
};

// A replay was called with something else than what was captured. The message names the argument.
class ReplayMismatch : public Error {
 public:
  using Error::Error;
};

// A replay took another path than the capture: a value that the host had read differs.
class GuardFailed : public Error {
 public:
  using Error::Error;
};

// A replay's result differs from eager's. The graph is dropped.
class CheckFailed : public Error {
 public:
  using Error::Error;
};

// livepool::Install() has not been called for this device.
class NotInstalled : public Error {
 public:
  using Error::Error;
};

// The torch in this process is not the release that this library was built for.
class UnsupportedTorch : public Error {
 public:
  using Error::Error;
};

}  // namespace livepool
