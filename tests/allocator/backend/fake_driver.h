// A CUDA driver for machines without a GPU: memory is numbers, and any call can be made to fail.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "livepool/backend/cuda_driver.h"
#include "livepool/base/units.h"

namespace livepool {

// Keeps the books that the real driver keeps (address ranges, physical pages, mappings, access) and
// refuses and records every misuse: a double map, an unmap of what is not mapped, a handle that was released.
// Addresses are never dereferenced. One object lives at a time, as the driver's functions carry no context;
// after its destruction the table answers as a driver that has shut down.
class FakeDriver {
 public:
  struct Options {
    Bytes capacity = 1_GiB;          // physical memory, of all devices together
    Bytes granularity = 2_MiB;       // of the recommended kind
    Bytes address_space = 1024_GiB;  // all reservations together
    int devices = 2;
    bool can_map_memory = true;       // the device attribute
    bool unmaps_many_at_once = true;  // cuMemUnmap takes a range of several whole mappings
  };

  FakeDriver() : FakeDriver(Options()) {}
  explicit FakeDriver(const Options& options);
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;
  ~FakeDriver();

  static const CudaDriver& table();

  // The n-th call from now (1: the next one) fails once, without effect.
  void FailNthCall(int n, cuda::Result result = cuda::kOutOfMemory);
  // So do all calls after it, until Heal.
  void FailFromNthCall(int n, cuda::Result result = cuda::kOutOfMemory);
  // Every call of one function fails until Heal; `function` is named as in the table, "MemUnmap".
  void FailEvery(const std::string& function, cuda::Result result);
  void Heal();
  void set_capacity(Bytes capacity);
  // From now on every call answers kDeinitialized, as at process exit.
  void ShutDown();

  // The function that FailNthCall or FailFromNthCall made fail, first; empty while they did not.
  std::string failed_function() const;
  int calls(const std::string& function) const;
  // Those that were made to fail.
  int refused(const std::string& function) const;
  // Physical bytes that exist, and those behind an address. Equal where nothing leaks.
  Bytes allocated() const;
  Bytes mapped() const;
  int open_handles() const;
  // Contexts that this thread has pushed and not popped, and primary contexts retained.
  int pushed_contexts() const;
  int retained_contexts() const;
  // Mapped on `device` with access for it.
  bool IsAccessible(const std::byte* address, int device = 0) const;
  std::vector<std::string> misuse() const;

 private:
  static constexpr cuda::DevicePtr kFirstAddress = 0x7000'0000'0000;

  template <auto Method, const char* Name>
  friend struct FakeDriverEntry;
#define LIVEPOOL_FAKE_METHOD(member, symbol, parameters) cuda::Result member parameters;
  LIVEPOOL_CUDA_DRIVER_FUNCTIONS(LIVEPOOL_FAKE_METHOD)
#undef LIVEPOOL_FAKE_METHOD

  struct Page {
    Bytes size = 0;
    int device = 0;
    bool open = true;  // the handle is not released
    bool mapped = false;
  };
  struct Mapping {
    Bytes size = 0;
    cuda::PageHandle page = 0;
    bool accessible = false;
  };
  using Mappings = std::map<cuda::DevicePtr, Mapping>;
  static cuda::DevicePtr End(const Mappings::value_type& entry) {
    return entry.first + static_cast<cuda::DevicePtr>(entry.second.size);
  }

  // Counts the call; what it must answer instead of working, or kSuccess.
  cuda::Result Enter(const std::string& function);
  cuda::Result InjectedFailure(const std::string& function);
  cuda::Result Misuse(const std::string& what);
  cuda::Result RequireContext(const std::string& function);
  // The mapping that has `address` inside, or end().
  Mappings::const_iterator MappingAt(cuda::DevicePtr address) const;
  // The mappings that tile [address, address + size) exactly; empty where they do not.
  std::vector<cuda::DevicePtr> Tiles(cuda::DevicePtr address, Bytes size) const;
  void FreeIfUnused(cuda::PageHandle handle);

  mutable std::mutex mutex_;  // guards what follows
  Options options_;
  std::map<cuda::DevicePtr, Bytes> reservations_;
  std::map<cuda::PageHandle, Page> pages_;
  Mappings mappings_;
  std::map<std::thread::id, int> pushed_;
  std::map<std::string, int> calls_;
  std::map<std::string, int> refused_;
  std::map<std::string, cuda::Result> failing_;
  std::vector<std::string> misuse_;
  std::string failed_function_;
  Bytes allocated_ = 0;  // the sum over pages_
  cuda::DevicePtr next_address_ = kFirstAddress;
  cuda::PageHandle next_handle_ = 1;
  int calls_to_failure_ = 0;  // 0: no failure is due
  bool fails_on_ = false;     // after the failure that is due, too
  cuda::Result failure_ = cuda::kSuccess;
  int retained_ = 0;
  bool shut_down_ = false;
};

}  // namespace livepool
