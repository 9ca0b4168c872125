/* livepool's C interface, for programs and loaders that use neither C++ nor Python. */
#ifndef LIVEPOOL_C_H
#define LIVEPOOL_C_H

#ifdef __cplusplus
extern "C" {
#endif

#define LIVEPOOL_C_API __attribute__((visibility("default")))

/* Puts livepool's allocator for `device` ("cpu" or "cuda") in the place of PyTorch's, for the life of the
 * process; later calls do nothing. Call it before other threads use PyTorch. Returns 0, or non-zero after a
 * failure, which leaves PyTorch as it was and livepool_last_error() with the reason. */
LIVEPOOL_C_API int livepool_install(const char* device);

/* 1 if PyTorch uses livepool's allocator for `device`, else 0. */
LIVEPOOL_C_API int livepool_installed(const char* device);

/* Why the calling thread's last failed call failed: one line, valid until its next call of livepool_install.
 * Empty if none has failed. */
LIVEPOOL_C_API const char* livepool_last_error(void);

/* There is no malloc/free pair for torch.cuda.memory.CUDAPluggableAllocator here. PyTorch's adapter for such a
 * pair drops record_stream, so memory could be used again while another stream still reads it, and it has
 * neither statistics nor MemPool. Use livepool_install, or livepool.Allocator() with change_current_allocator. */

#ifdef __cplusplus
}
#endif

#endif
