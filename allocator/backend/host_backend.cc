#include "livepool/backend/host_backend.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>

#include "livepool/backend/granules.h"
#include "livepool/base/error.h"

namespace livepool {
namespace {

std::string ErrorText(int error) { return std::generic_category().message(error); }

}  // namespace

std::byte* HostBackend::Reserve(Bytes size) {
  // One granule more than asked for, so that an aligned range of the full size lies inside.
  const Bytes granule = Granularity();
  const std::size_t total = static_cast<std::size_t>(WholeGranules(size, granule)) + static_cast<std::size_t>(granule);
  void* const start = mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) {
    throw OutOfMemory("host: cannot reserve " + FormatBytes(size) + " of address space: mmap: " + ErrorText(errno) +
                          ". Reserve less, or raise the limit (ulimit -v).",
                      size);
  }
  // The unaligned ends go back at once; what lies between stays for the life of the process.
  auto* const first = static_cast<std::byte*>(start);
  const auto address = reinterpret_cast<std::uintptr_t>(first);
  const auto head = static_cast<std::size_t>(AlignUp(static_cast<Bytes>(address), granule)) - address;
  const std::size_t tail = static_cast<std::size_t>(granule) - head;
  if (head > 0) munmap(first, head);
  if (tail > 0) munmap(first + total - tail, tail);
  return first + head;
}

void HostBackend::Map(std::byte* address, Bytes size) {
  const auto length = static_cast<std::size_t>(size);
  if (mprotect(address, length, PROT_READ | PROT_WRITE) != 0) {
    const int error = errno;
    // mprotect works through the kernel's areas one by one and keeps what it did before it failed.
    mprotect(address, length, PROT_NONE);
    throw OutOfMemory("host: no memory for " + FormatBytes(size) + ": mprotect: " + ErrorText(error) +
                          ". Raise the limit (ulimit -d, ulimit -v, vm.overcommit_memory, vm.max_map_count), or run "
                          "smaller batches.",
                      size);
  }
  // Advice only: a kernel without transparent huge pages refuses it, and the memory works all the same.
  madvise(address, length, MADV_HUGEPAGE);
}

void HostBackend::Unmap(std::byte* address, Bytes size) noexcept {
  const auto length = static_cast<std::size_t>(size);
  // Not munmap or a fresh mmap: the addresses must at no moment be free for somebody else to take.
  // Locked pages (mlockall) refuse to be dropped: they stay with the process, and the next Map reuses them.
  madvise(address, length, MADV_DONTNEED);
  mprotect(address, length, PROT_NONE);
}

void HostBackend::Fill(std::byte* address, Bytes size, std::byte value, StreamHandle /*stream*/) noexcept {
  std::memset(address, std::to_integer<int>(value), static_cast<std::size_t>(size));
}

}  // namespace livepool
