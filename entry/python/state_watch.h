// Whether the Python objects that a capture relied on are still in their places.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

namespace livepool {

// A model has some hundred such places (each parameter, submodule, training flag, …), and they are looked at on
// every replay, so this is done here and not in Python: about 10 ns a place.
class StateWatch {
 public:
  // From now on container[key] must be `expected` itself. `container`: a dict, list, tuple or closure cell (whose key
  // is ignored). `what` says in messages what is in that place.
  void AddPlace(pybind11::object container, pybind11::object key, pybind11::object expected, std::string what);
  // From now on `container`, a dict, must have as many entries as it has now.
  void AddSize(pybind11::dict container, std::string what);

  // Throws ReplayMismatch, naming the first place that has changed. The GIL is held.
  void Check() const;

 private:
  struct Place {
    pybind11::object container;
    pybind11::object key;
    pybind11::object expected;
    std::string what;
  };
  struct Size {
    pybind11::dict container;
    std::size_t expected;
    std::string what;
  };

  static PyObject* Look(const Place& place);  // borrowed; null if there is nothing

  std::vector<Place> places_;
  std::vector<Size> sizes_;
};

}  // namespace livepool
