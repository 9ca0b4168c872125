#include "call_key.h"

#include <torch/csrc/autograd/python_variable.h>

#include <algorithm>
#include <bit>

#include "livepool/base/error.h"

namespace livepool {

namespace py = pybind11;

namespace {

bool IsBuiltinConstant(PyObject* leaf) {
  return leaf == Py_None || PyBool_Check(leaf) || PyLong_CheckExact(leaf) || PyFloat_CheckExact(leaf) ||
         PyUnicode_CheckExact(leaf);
}

bool EqualObjects(PyObject* a, PyObject* b) {
  if (a == b) return true;
  const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  if (equal < 0) throw py::error_already_set();
  return equal == 1;
}

// Objects that cannot be watched for their death are kept alive.
bool IsWeakReferencable(PyObject* object) { return PyType_SUPPORTS_WEAKREFS(Py_TYPE(object)) != 0; }

}  // namespace

struct CallKey::Builder {
  const CallRules& rules;
  std::vector<Token>& tokens;
  std::vector<at::Tensor> tensors;
  py::list& tensor_objects;
  py::list& objects;
  std::size_t hash = 0;

  void Mix(std::size_t value) { hash = (hash ^ value) * 0x9E3779B97F4A7C15 + (hash >> 32); }
  void Mix(const void* pointer) { Mix(reinterpret_cast<std::size_t>(pointer)); }

  void Add(PyObject* node) {
    if (Py_EnterRecursiveCall(" in the arguments of a call") != 0) throw py::error_already_set();
    struct Leave {
      ~Leave() { Py_LeaveRecursiveCall(); }
    } const leave;
    if (THPVariable_CheckExact(node) || THPVariable_Check(node)) return AddTensor(node);
    if (IsBuiltinConstant(node)) return AddConstant(node);
    if (PyTuple_CheckExact(node)) return AddSequence(node, PySequence_Fast_ITEMS(node), PyTuple_GET_SIZE(node));
    if (PyList_CheckExact(node)) return AddList(node);
    if (PyDict_CheckExact(node)) return AddDict(py::reinterpret_borrow<py::dict>(node), nullptr);
    AddOther(node);
  }

  void AddTensor(PyObject* tensor) {
    if (!THPVariable_CheckExact(tensor) && !rules.is_plain(py::handle(tensor)).cast<bool>()) {
      throw CaptureRefused(std::string("an argument is a ") + Py_TYPE(tensor)->tp_name + ", a tensor subclass");
    }
    tensors.push_back(THPVariable_Unpack(tensor));
    tensor_objects.append(py::handle(tensor));
    tokens.push_back({.kind = Kind::kTensor});
    Mix(1);
  }

  void AddConstant(PyObject* constant) {
    // The bits of a float, as Python's hash of a NaN is another one for each object.
    const auto hash_of = PyFloat_CheckExact(constant) ? std::bit_cast<std::int64_t>(PyFloat_AS_DOUBLE(constant))
                                                      : static_cast<std::int64_t>(PyObject_Hash(constant));
    if (hash_of == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
    tokens.push_back(
        {.kind = Kind::kConstant, .type = Py_TYPE(constant), .value = py::reinterpret_borrow<py::object>(constant)});
    Mix(Py_TYPE(constant));
    Mix(static_cast<std::size_t>(hash_of));
  }

  void AddObject(PyObject* object) {
    tokens.push_back({.kind = Kind::kObject, .type = Py_TYPE(object), .identity = object});
    if (IsWeakReferencable(object))
      objects.append(py::handle(object));
    else
      tokens.back().value = py::reinterpret_borrow<py::object>(object);
    Mix(object);
  }

  void AddNode(PyObject* node, Py_ssize_t children, py::object value) {
    tokens.push_back({.kind = Kind::kNode, .type = Py_TYPE(node), .children = children, .value = std::move(value)});
    Mix(Py_TYPE(node));
    Mix(static_cast<std::size_t>(children));
  }

  void AddSequence(PyObject* node, PyObject* const* items, Py_ssize_t n) {
    AddNode(node, n, {});
    for (Py_ssize_t i = 0; i < n; ++i) Add(items[i]);
  }

  // A copy, as what runs while the items are looked at may change a list.
  void AddList(PyObject* list) {
    const py::tuple items = py::reinterpret_steal<py::tuple>(PyList_AsTuple(list));
    AddSequence(list, PySequence_Fast_ITEMS(items.ptr()), PyTuple_GET_SIZE(items.ptr()));
  }

  // `keys` may be null: then the dict's own order.
  void AddDict(const py::dict& dict, const py::list* keys) {
    const py::list order = keys != nullptr ? *keys : py::reinterpret_steal<py::list>(PyDict_Keys(dict.ptr()));
    AddNode(dict.ptr(), PyList_GET_SIZE(order.ptr()), order);
    for (const py::handle key : order) Add(py::object(dict[key]).ptr());
  }

  void AddOther(PyObject* node) {
    const py::handle type(reinterpret_cast<PyObject*>(Py_TYPE(node)));
    if (PyObject* registered = PyDict_GetItem(rules.nodes.ptr(), type.ptr())) {
      const py::tuple flat = py::handle(registered).attr("flatten_fn")(py::handle(node));
      const py::tuple children(flat[0]);
      AddNode(node, static_cast<Py_ssize_t>(children.size()), flat[1]);
      for (const py::handle child : children) Add(child.ptr());
    } else if (PyTuple_Check(node) && py::hasattr(type, "_fields")) {  // a named tuple
      AddSequence(node, PySequence_Fast_ITEMS(node), PyTuple_GET_SIZE(node));
    } else if (const py::object fields = rules.dataclass_fields(py::handle(node)); !fields.is_none()) {
      AddNode(node, static_cast<Py_ssize_t>(py::len(fields)), {});
      for (const py::handle field : fields) Add(py::object(py::getattr(py::handle(node), field)).ptr());
    } else if (rules.is_constant(py::handle(node)).cast<bool>()) {
      AddConstant(node);
    } else {
      AddObject(node);
    }
  }
};

CallKey::CallKey(std::shared_ptr<const CallRules> rules, const py::tuple& args, const py::dict& kwargs,
                 py::list& tensors, py::list& objects)
    : rules_(std::move(rules)) {
  Builder builder{.rules = *rules_, .tokens = tokens_, .tensor_objects = tensors, .objects = objects};
  positional_ = args.size();
  for (const py::handle each : args) builder.Add(each.ptr());
  py::list keywords = py::reinterpret_steal<py::list>(PyDict_Keys(kwargs.ptr()));
  if (PyList_Sort(keywords.ptr()) != 0) throw py::error_already_set();
  builder.AddDict(kwargs, &keywords);
  signature_ = CallSignature::Of(builder.tensors);
  builder.Mix(signature_->Hash());
  hash_ = builder.hash;
}

bool CallKey::Equals(const CallKey& other) const {
  if (hash_ != other.hash_ || positional_ != other.positional_ || tokens_.size() != other.tokens_.size() ||
      !(*signature_ == *other.signature_)) {
    return false;
  }
  const auto same_value = [&](const Token& a, const Token& b) {
    if (a.kind == Kind::kConstant) return a.value.is(b.value) || rules_->same_leaf(a.value, b.value).cast<bool>();
    if (!a.value || !b.value) return !a.value && !b.value;
    return EqualObjects(a.value.ptr(), b.value.ptr());
  };
  return std::equal(tokens_.begin(), tokens_.end(), other.tokens_.begin(), [&](const Token& a, const Token& b) {
    return a.kind == b.kind && a.type == b.type && a.identity == b.identity && a.children == b.children &&
           same_value(a, b);
  });
}

std::string CallKey::TextOf(std::size_t& token, std::size_t& tensor, const std::vector<std::string>& tensors) const {
  const Token& each = tokens_[token++];
  switch (each.kind) {
    case Kind::kTensor:
      return tensors[tensor++];
    case Kind::kConstant:
      return py::repr(each.value);
    case Kind::kObject:
      return std::string("a ") + each.type->tp_name;
    case Kind::kNode:
      break;
  }
  std::string text;
  const bool keys = each.type == &PyDict_Type;
  for (Py_ssize_t i = 0; i < each.children; ++i) {
    if (i > 0) text += ", ";
    if (keys) text += std::string(py::str(py::handle(PyList_GET_ITEM(each.value.ptr(), i)))) + "=";
    text += TextOf(token, tensor, tensors);
  }
  if (each.type == &PyTuple_Type) return "(" + text + ")";
  if (each.type == &PyList_Type) return "[" + text + "]";
  return (keys ? "{" : std::string(each.type->tp_name) + "(") + text + (keys ? "}" : ")");
}

std::string CallKey::ToText() const {
  const std::vector<std::string> tensors = signature_->ToTexts();
  std::string text;
  std::size_t token = 0, tensor = 0;
  for (std::size_t i = 0; i <= positional_; ++i) {
    std::string part = TextOf(token, tensor, tensors);
    if (i == positional_) part = part.substr(1, part.size() - 2);  // the keywords, without braces
    if (!part.empty()) text += (text.empty() ? "" : ", ") + part;
  }
  return text;
}

}  // namespace livepool
