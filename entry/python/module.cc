// The compiled half of the Python package: forwards to the C++ API.
#include <torch/csrc/utils/pybind.h>

#include "call_key.h"
#include "errors.h"
#include "figures.h"
#include "livepool/base/env.h"
#include "livepool/livepool.h"
#include "livepool/saved_plans.h"
#include "state_watch.h"

#ifdef LIVEPOOL_HAVE_CUDA
#include <c10/cuda/CUDACachingAllocator.h>

#include "livepool/torch/shared_cuda_allocator.h"
#endif

namespace livepool {
namespace {

DeviceId::Kind KindOf(const std::string& device) {
  if (device == "cpu") return DeviceId::Kind::kHost;
  if (device == "cuda") return DeviceId::Kind::kCuda;
  throw InvalidInput("device '" + device + "' is unknown: use 'cpu' or 'cuda'");
}

// A Python callable from list of tensors to list of tensors, held weakly: Captured owns it, and a model that holds its
// graph must stay collectable. The weak reference may be destroyed on a thread without the GIL.
Callable ToCallable(const py::object& function) {
  const std::shared_ptr<py::weakref> weak(new py::weakref(function), [](py::weakref* each) {
    const py::gil_scoped_acquire gil;
    delete each;
  });
  return [weak](const Tensors& inputs) {
    const py::gil_scoped_acquire gil;
    const py::object held = (*weak)();
    if (held.is_none()) throw InvalidInput("the callable of this graph is gone");
    return held(inputs).cast<Tensors>();
  };
}

// The same graph, which drops Python's lock when it goes: it waits for locks then whose holders may wait for Python's.
std::shared_ptr<ExecGraph> WithoutGilAtEnd(std::shared_ptr<ExecGraph> graph) {
  ExecGraph* const address = graph.get();
  return {address, [graph = std::move(graph)](ExecGraph*) mutable {
            if (PyGILState_Check() == 0) return graph.reset();
            const py::gil_scoped_release no_gil;
            graph.reset();
          }};
}

std::shared_ptr<ExecGraph> CapturePython(const py::object& fn, const Tensors& inputs,
                                         std::vector<std::pair<std::string, at::Tensor>> state,
                                         std::vector<std::string> argument_names, CaptureOptions options) {
  Callable callable = ToCallable(fn);
  const py::gil_scoped_release no_gil;
  options.state = std::move(state);
  options.argument_names = std::move(argument_names);
  return WithoutGilAtEnd(Capture(std::move(callable), inputs, std::move(options)));
}

// A replay that takes the tensors out of the list, so that nobody holds them for Python. If it does not begin, they are
// put back.
Tensors Consume(ExecGraph& graph, py::list list) {
  auto inputs = list.cast<Tensors>();
  list.attr("clear")();
  try {
    const py::gil_scoped_release no_gil;
    return graph.Replay(std::move(inputs));
  } catch (...) {
    for (const at::Tensor& each : inputs) list.append(each);
    throw;
  }
}

// Lets Python's garbage collector look into a StateWatch.
void MakeCollectable(PyHeapTypeObject* heap_type) {
  PyTypeObject& type = heap_type->ht_type;
  type.tp_flags |= Py_TPFLAGS_HAVE_GC;
  type.tp_traverse = [](PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    return py::detail::is_holder_constructed(self) ? py::cast<StateWatch&>(py::handle(self)).Traverse(visit, arg) : 0;
  };
  type.tp_clear = [](PyObject* self) {
    if (py::detail::is_holder_constructed(self)) py::cast<StateWatch&>(py::handle(self)).Clear();
    return 0;
  };
}

// The key of a call, its tensors, and the objects that it is only good with.
py::tuple KeyOf(const std::shared_ptr<CallRules>& rules, const py::tuple& args, const py::dict& kwargs) {
  py::list tensors, objects;
  CallKey key(rules, args, kwargs, tensors, objects);
  return py::make_tuple(std::move(key), std::move(tensors), std::move(objects));
}

// Plans that a file keeps. `path`: UTF-8.
void BindSavedPlans(py::module& m) {
  py::class_<SavedPlan, std::shared_ptr<SavedPlan>>(m, "SavedPlan");
  py::class_<SavedPlans>(m, "SavedPlans")
      .def(py::init<>())
      .def(py::init<const SavedPlans&>())
      .def_static("read", &SavedPlans::Read, py::arg("path"), py::arg("state"),
                  py::call_guard<py::gil_scoped_release>())
      .def("write", &SavedPlans::Write, py::arg("path"), py::arg("state"), py::call_guard<py::gil_scoped_release>())
      .def("put",
           [](SavedPlans& plans, const CallKey& key, const ExecGraph& graph) {
             plans.Put(key.ToText(), key.tensors().Portable(), std::make_shared<SavedPlan>(graph.Save()));
           })
      .def("find",
           [](const SavedPlans& plans, const CallKey& key) {
             return std::const_pointer_cast<SavedPlan>(
                 plans.Find(key.ToText(), key.tensors()));  // pybind11 holds no const
           })
      .def("__len__", [](const SavedPlans& plans) { return plans.entries().size(); });
}

}  // namespace

PYBIND11_MODULE(_livepool, m) {
  RegisterErrors(m);
  m.def("install", [](const std::string& device) { Install(KindOf(device)); });
  m.def("installed", [](const std::string& device) { return Installed(KindOf(device)); });
  m.def("stats", &StatsDict);
  m.def("trim", &TrimArenas, py::call_guard<py::gil_scoped_release>());
  m.def("set_memory_limit", &SetMemoryLimit, py::call_guard<py::gil_scoped_release>());
  m.def("memory_limit", &MemoryLimitBytes);
  m.def("parse_bytes", [](const std::string& text) { return ParseBytes(text); });
  m.def("refuse_capture", [](const std::string& reason) { return RefuseCurrentCapture(reason); });
  py::enum_<CaptureOptions::Mode>(m, "Mode")
      .value("replay", CaptureOptions::Mode::kReplay)
      .value("graph", CaptureOptions::Mode::kGraph)
      .value("rehearsal", CaptureOptions::Mode::kRehearsal);
  py::class_<CaptureOptions>(m, "CaptureOptions")
      .def(py::init<>())
      .def_readwrite("in_place", &CaptureOptions::in_place)
      .def_readwrite("fold_constants", &CaptureOptions::fold_constants)
      .def_readwrite("order_for_memory", &CaptureOptions::order_for_memory)
      .def_readwrite("search_in_background", &CaptureOptions::search_in_background)
      .def_readwrite("mode", &CaptureOptions::mode)
      .def_readwrite("outputs_in_arena", &CaptureOptions::outputs_in_arena)
      .def("with_plan", [](CaptureOptions options, std::shared_ptr<SavedPlan> plan) {
        options.plan = std::move(plan);
        return options;
      });
  BindSavedPlans(m);
  m.def("capture", &CapturePython, py::arg("fn"), py::arg("inputs"), py::arg("state"), py::arg("argument_names"),
        py::arg("options"));
  m.def("enabled", [] { return GetEnv().enabled; });
  m.def("log_level", [] { return static_cast<int>(GetEnv().log); });
  py::class_<CallRules, std::shared_ptr<CallRules>>(m, "CallRules")
      .def(
          py::init([](py::dict nodes, py::object is_constant, py::object same_leaf, py::object is_plain,
                      py::object dataclass_fields) {
            return std::make_shared<CallRules>(CallRules{std::move(nodes), std::move(is_constant), std::move(same_leaf),
                                                         std::move(is_plain), std::move(dataclass_fields)});
          }),
          py::arg("nodes"), py::arg("is_constant"), py::arg("same_leaf"), py::arg("is_plain"),
          py::arg("dataclass_fields"))
      .def("key", &KeyOf);
  py::class_<CallKey>(m, "CallKey")
      .def("__hash__", &CallKey::Hash)
      .def("__eq__", &CallKey::Equals)
      .def("__str__", &CallKey::ToText);
  m.def("scope_stats", &ScopeStatsDict);
  m.def("scope_stats_of", [](const std::string& name) { return ToDict(StatsOfScope(name)); });
  m.def("serve_eager_code", &ServeEagerCode);
  m.def("wait_for_plans", &WaitForPlans, py::call_guard<py::gil_scoped_release>());
  py::class_<PassScope>(m, "PassScope").def(py::init<const std::string&>()).def("end", &PassScope::End);
  py::class_<StateWatch>(m, "StateWatch", py::custom_type_setup(&MakeCollectable))
      .def(py::init<py::object>(), py::arg("same"))
      .def("add_place", &StateWatch::AddPlace)
      .def("add_size", &StateWatch::AddSize)
      .def("forget", &StateWatch::Forget)
      .def("change", &StateWatch::Change);
  py::class_<ExecGraph, std::shared_ptr<ExecGraph>>(m, "ExecGraph")
      .def("replay", py::overload_cast<const Tensors&>(&ExecGraph::Replay), py::call_guard<py::gil_scoped_release>())
      .def("consume", &Consume)
      .def("unconditional", &ExecGraph::Unconditional)
      .def("disposable", &ExecGraph::Disposable)
      .def("writes", &ExecGraph::Writes)
      .def("report", [](const ExecGraph& graph) { return ToDict(graph.Report()); });
#ifdef LIVEPOOL_HAVE_CUDA
  m.attr("has_cuda") = true;
  m.def("cuda_allocator", &SharedCudaAllocator);
#else
  m.attr("has_cuda") = false;
#endif
}

}  // namespace livepool
