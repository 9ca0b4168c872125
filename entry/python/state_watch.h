// Whether the Python objects that a capture relied on are still in their places.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>
#include <string>
#include <vector>

namespace livepool {

// A model has more than a thousand such places (each parameter, submodule, attribute, …), and they are looked at on
// every replay, so this is done here and not in Python: about 10 ns a place. The GIL is held in all calls.
class StateWatch {
 public:
  // same(before, now): whether an object that is another one than before has the same value.
  explicit StateWatch(pybind11::object same) : same_(std::move(same)) {}

  // From now on container[key] must be what it is now. `container`: a dict, list, tuple or closure cell (whose key
  // is ignored). `what` says in messages what is in that place.
  void AddPlace(pybind11::object container, pybind11::object key, std::string what);
  // From now on `container`, a dict or list, must have as many entries as it has now.
  void AddSize(pybind11::object container, std::string what);
  // The places of `container` are no longer watched.
  void Forget(const pybind11::object& container);

  // The first place that has changed, as "<what> was replaced" or "<what> has 3 entries instead of 2".
  std::optional<std::string> Change() const;

  // For Python's garbage collector: a model may hold its own graph.
  int Traverse(visitproc visit, void* arg) const;
  void Clear();

 private:
  struct Place {
    pybind11::object container;
    pybind11::object key;
    pybind11::object expected;
  };
  struct Size {
    pybind11::object container;
    Py_ssize_t expected;
  };

  static PyObject* Look(const Place& place);  // borrowed; null if there is nothing
  static Py_ssize_t SizeOf(const pybind11::object& container);
  bool Holds(const Place& place) const;

  pybind11::object same_;
  std::vector<Place> places_;
  std::vector<Size> sizes_;
  std::vector<std::string> place_names_, size_names_;  // apart from what each check reads
};

}  // namespace livepool
