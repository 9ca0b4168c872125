// liblivepool_preload.so: LD_PRELOAD it, and torch in that program allocates through livepool.
//
// Two functions of torch are interposed. Each is called across libraries, first before the allocator in
// question serves anything:
//   c10::GetCPUAllocator()                      by libtorch_cpu, at the first CPU tensor
//   c10::cuda::device_count_ensure_non_zero()   by libtorch_cuda, when CUDA is initialised
// The first call installs livepool, every call is forwarded. A program without torch never calls them.
// Whatever goes wrong, the program runs on with PyTorch's own allocator, and one line on stderr says so.
// With LIVEPOOL_LOG=info a program that has loaded torch says at its end whether livepool was active: a hook
// that is never called would otherwise go unnoticed.
// A program that links LibTorch statically does not call through these symbols: there, call livepool_install.
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>

namespace {

constexpr char kLibrary[] = "liblivepool_torch.so";

// base/env.h, which knows the variables and complains of bad values, is not linked here.
bool Is(const char* variable, const char* wanted) {
  const char* value = getenv(variable);
  return value != nullptr && strcmp(value, wanted) == 0;
}

const char* LinkerError() {
  const char* error = dlerror();
  return error == nullptr ? "unknown linker error" : error;
}

// The path of livepool_torch: beside this library. False if it does not fit.
bool FindLibrary(char (&path)[PATH_MAX]) {
  Dl_info self;
  if (dladdr(reinterpret_cast<const void*>(&FindLibrary), &self) == 0) return false;
  const char* slash = strrchr(self.dli_fname, '/');
  const int folder = slash == nullptr ? 0 : static_cast<int>(slash - self.dli_fname + 1);
  const int length = snprintf(path, sizeof(path), "%.*s%s", folder, self.dli_fname, kLibrary);
  return length > 0 && static_cast<size_t>(length) < sizeof(path);
}

// Through livepool's C interface (livepool_c.h). False after a complaint.
bool Install(const char* device) {
  const auto fail = [&](const char* why) {
    fprintf(stderr, "livepool: not active for %s: %s; the program runs with PyTorch's own allocator\n", device, why);
    return false;
  };
  char path[PATH_MAX];
  if (!FindLibrary(path)) return fail("cannot tell where liblivepool_preload.so lies");
  // Never closed: allocators are immortal.
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) return fail(LinkerError());
  const auto install = reinterpret_cast<int (*)(const char*)>(dlsym(library, "livepool_install"));
  const auto last_error = reinterpret_cast<const char* (*)()>(dlsym(library, "livepool_last_error"));
  if (install == nullptr || last_error == nullptr) return fail(LinkerError());
  return install(device) == 0 || fail(last_error());
}

// One interposed function. Constant-initialised, so that it works before any constructor has run.
class Hook {
 public:
  constexpr Hook(const char* library, const char* symbol, const char* device)
      : library_(library), symbol_(symbol), device_(device) {}

  // Installs at the first call; returns torch's function. The installation may call it again, and other
  // threads may come meanwhile: none of them waits, they are forwarded.
  void* Real() {
    if (!called_.load(std::memory_order_relaxed) && !called_.exchange(true)) {
      status_ = Is("LIVEPOOL", "0") ? "off (LIVEPOOL=0)" : Install(device_) ? "active" : "not active";
    }
    void* real = real_.load(std::memory_order_acquire);
    if (real == nullptr) {
      // Not RTLD_NEXT, which does not find what Python has loaded with RTLD_LOCAL.
      void* torch = dlopen(library_, RTLD_LAZY | RTLD_NOLOAD);
      real = torch == nullptr ? nullptr : dlsym(torch, symbol_);
      if (real == nullptr) real = dlsym(RTLD_NEXT, symbol_);
      real_.store(real, std::memory_order_release);
    }
    if (real == nullptr) {
      // Somebody called a function of torch that is nowhere: without us the linker had ended the program.
      fprintf(stderr, "livepool: no %s in this process (LD_PRELOAD)\n", symbol_);
      abort();
    }
    return real;
  }

  const char* status() const { return status_; }

 private:
  const char* const library_;
  const char* const symbol_;
  const char* const device_;
  const char* status_ = "not used";  // for the message at exit
  std::atomic<bool> called_{false};
  std::atomic<void*> real_{nullptr};
};

constinit Hook cpu("libc10.so", "_ZN3c1015GetCPUAllocatorEv", "cpu");
constinit Hook cuda("libc10_cuda.so", "_ZN3c104cuda28device_count_ensure_non_zeroEv", "cuda");

__attribute__((destructor)) void ReportAtExit() {
  if (!Is("LIVEPOOL_LOG", "info") || dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD) == nullptr) return;
  fprintf(stderr, "livepool: cpu %s, cuda %s\n", cpu.status(), cuda.status());
}

}  // namespace

// Exceptions of torch (no device, no driver) pass through.
#define LIVEPOOL_INTERPOSED extern "C" __attribute__((visibility("default")))

LIVEPOOL_INTERPOSED void* _ZN3c1015GetCPUAllocatorEv() { return reinterpret_cast<void* (*)()>(cpu.Real())(); }

// c10::DeviceIndex is a signed byte.
LIVEPOOL_INTERPOSED signed char _ZN3c104cuda28device_count_ensure_non_zeroEv() {
  return reinterpret_cast<signed char (*)()>(cuda.Real())();
}
