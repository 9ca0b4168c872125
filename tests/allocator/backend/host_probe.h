// What the kernel knows of host memory, and limits on it, for tests.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <fstream>
#include <string>

#include "livepool/base/units.h"

namespace livepool {

// Whether the process may read `address`, asked without touching it.
inline bool IsReadable(const std::byte* address) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return false;
  const bool readable = write(ends[1], address, 1) == 1;  // EFAULT where it is not
  close(ends[0]);
  close(ends[1]);
  return readable;
}

// While it lives, the process can make about `room` bytes more writable (ulimit -d), then mprotect fails.
class WritableMemoryLimit {
 public:
  explicit WritableMemoryLimit(Bytes room) {
    getrlimit(RLIMIT_DATA, &before_);
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(WritableNow() + room);
    setrlimit(RLIMIT_DATA, &limit);
  }
  WritableMemoryLimit(const WritableMemoryLimit&) = delete;
  WritableMemoryLimit& operator=(const WritableMemoryLimit&) = delete;
  ~WritableMemoryLimit() { setrlimit(RLIMIT_DATA, &before_); }

 private:
  static Bytes WritableNow() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
      Bytes kibibytes = 0;
      if (word == "VmData:" && status >> kibibytes) return kibibytes << 10;
    }
    return 0;
  }
  rlimit before_{};
};

}  // namespace livepool
