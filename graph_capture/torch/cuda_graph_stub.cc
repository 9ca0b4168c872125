// CUDA graphs in a build without CUDA.
#include "cuda_graph.h"
#include "livepool/base/error.h"

namespace livepool {

struct GraphHome::Impl {};
struct CaptureStream::Impl {};
struct CudaGraph::Impl {};

GraphHome& GraphHome::Of(ArenaPool&) { throw Error("livepool: built without CUDA, so there are no CUDA graphs"); }
void GraphHome::Enter() {}
void GraphHome::Leave() {}
PlannedArena* GraphHome::TryHold(Bytes) { return nullptr; }
void GraphHome::Return(PlannedArena&) {}
CaptureStream::CaptureStream(GraphHome&) {}
CaptureStream::~CaptureStream() = default;
CudaGraph::CudaGraph(GraphHome&, PlannedArena&, const std::vector<at::Generator>&, const std::function<void()>&) {}
CudaGraph::~CudaGraph() = default;
void CudaGraph::Launch() {}

}  // namespace livepool
