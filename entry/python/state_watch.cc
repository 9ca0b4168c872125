#include "state_watch.h"

#include "livepool/base/error.h"

namespace livepool {

namespace py = pybind11;

void StateWatch::AddPlace(py::object container, py::object key, py::object expected, std::string what) {
  places_.push_back({std::move(container), std::move(key), std::move(expected), std::move(what)});
}

void StateWatch::AddSize(py::dict container, std::string what) {
  const std::size_t size = container.size();
  sizes_.push_back({std::move(container), size, std::move(what)});
}

PyObject* StateWatch::Look(const Place& place) {
  PyObject* container = place.container.ptr();
  if (PyDict_Check(container)) return PyDict_GetItem(container, place.key.ptr());
  if (PyCell_Check(container)) return PyCell_GET(container);
  const Py_ssize_t index = PyLong_AsSsize_t(place.key.ptr());
  if (PyList_Check(container)) return index < PyList_GET_SIZE(container) ? PyList_GET_ITEM(container, index) : nullptr;
  if (PyTuple_Check(container)) return index < PyTuple_GET_SIZE(container) ? PyTuple_GET_ITEM(container, index) : nullptr;
  return nullptr;
}

void StateWatch::Check() const {
  for (const Place& place : places_) {
    if (Look(place) != place.expected.ptr()) {
      throw ReplayMismatch(place.what + " was replaced since the capture; capture again");
    }
  }
  for (const Size& size : sizes_) {
    if (size.container.size() != size.expected) {
      throw ReplayMismatch(size.what + " has " + std::to_string(size.container.size()) + " entries, and had " +
                           std::to_string(size.expected) + " at the capture; capture again");
    }
  }
}

}  // namespace livepool
