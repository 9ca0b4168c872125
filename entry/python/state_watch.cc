#include "state_watch.h"

#include <utility>

#include "livepool/base/error.h"

namespace livepool {

namespace py = pybind11;

void StateWatch::AddPlace(py::object container, py::object key, std::string what) {
  Place place{std::move(container), std::move(key), py::object()};
  place.expected = py::reinterpret_borrow<py::object>(Look(place));
  if (!place.expected) throw InvalidInput(what + " is not there, so it cannot be watched");
  places_.push_back(std::move(place));
  place_names_.push_back(std::move(what));
}

void StateWatch::AddSize(py::object container, std::string what) {
  const Py_ssize_t size = SizeOf(container);
  sizes_.push_back({std::move(container), size});
  size_names_.push_back(std::move(what));
}

void StateWatch::Forget(const py::object& container) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (places_[i].container.is(container)) continue;
    std::swap(places_[kept], places_[i]);
    std::swap(place_names_[kept++], place_names_[i]);
  }
  places_.resize(kept);
  place_names_.resize(kept);
}

PyObject* StateWatch::Look(const Place& place) {
  PyObject* container = place.container.ptr();
  if (PyDict_Check(container)) return PyDict_GetItem(container, place.key.ptr());
  if (PyCell_Check(container)) return PyCell_GET(container);
  const Py_ssize_t index = PyLong_AsSsize_t(place.key.ptr());
  if (PyList_Check(container)) return index < PyList_GET_SIZE(container) ? PyList_GET_ITEM(container, index) : nullptr;
  if (PyTuple_Check(container))
    return index < PyTuple_GET_SIZE(container) ? PyTuple_GET_ITEM(container, index) : nullptr;
  return nullptr;
}

Py_ssize_t StateWatch::SizeOf(const py::object& container) {
  return PyDict_Check(container.ptr()) ? PyDict_GET_SIZE(container.ptr()) : PyList_GET_SIZE(container.ptr());
}

bool StateWatch::Holds(const Place& place) const {
  PyObject* found = Look(place);
  if (found == place.expected.ptr()) return true;
  if (found == nullptr) return false;
  return same_(place.expected, py::reinterpret_borrow<py::object>(found)).cast<bool>();
}

std::optional<std::string> StateWatch::Change() const {
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (!Holds(places_[i])) return place_names_[i] + " was replaced";
  }
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    const Py_ssize_t size = SizeOf(sizes_[i].container);
    if (size != sizes_[i].expected) {
      return size_names_[i] + " has " + std::to_string(size) + " entries instead of " +
             std::to_string(sizes_[i].expected);
    }
  }
  return std::nullopt;
}

int StateWatch::Traverse(visitproc visit, void* arg) const {
  Py_VISIT(same_.ptr());
  for (const Place& place : places_) {
    Py_VISIT(place.container.ptr());
    Py_VISIT(place.key.ptr());
    Py_VISIT(place.expected.ptr());
  }
  for (const Size& size : sizes_) Py_VISIT(size.container.ptr());
  return 0;
}

void StateWatch::Clear() {
  // Out of the members first: a destructor may run any Python code.
  const std::vector<Place> places = std::exchange(places_, {});
  const std::vector<Size> sizes = std::exchange(sizes_, {});
}

}  // namespace livepool
