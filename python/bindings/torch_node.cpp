// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "torch_node.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "torch_seen.h"

namespace wavejit::python {

namespace {

// As _plainly.py numbers what is remembered.
constexpr int step = 4;
constexpr int for_gradients = 3;

nb::object owned(PyObject* object) {
  if (object == nullptr) nb::raise_python_error();
  return nb::steal(object);
}

template <typename... Objects>
nb::object called(const nb::object& function, const Objects&... objects) {
  const std::array<PyObject*, sizeof...(objects)> arguments{objects.ptr()...};
  return owned(PyObject_Vectorcall(function.ptr(), arguments.data(), arguments.size(), nullptr));
}

nb::object attribute(nb::handle object, const nb::str& name) {
  return owned(PyObject_GetAttr(object.ptr(), name.ptr()));
}

bool is_true(nb::handle object) {
  const int answer = PyObject_IsTrue(object.ptr());
  if (answer < 0) nb::raise_python_error();
  return answer != 0;
}

// Borrowed; null where there is none.
PyObject* item(nb::handle dict, nb::handle key) {
  PyObject* found = PyDict_GetItemWithError(dict.ptr(), key.ptr());
  if (found == nullptr && PyErr_Occurred() != nullptr) nb::raise_python_error();
  return found;
}

nb::str interned(const char* text) { return nb::steal<nb::str>(PyUnicode_InternFromString(text)); }

// What Python has and this asks: functions without arguments, true where somebody looks.
struct Asked {
  std::vector<nb::object> in_front;         // of a call
  std::vector<nb::object> before_backward;  // of a node
  nb::object grad_enabled;
};

// What Python does for this.
struct Used {
  nb::object apply;              // autograd's, of the node: face, q, k, v, words
  nb::object forward;            // face, q, k, v, words -> out, lse
  nb::object without_gradients;  // the same -> out
  nb::object backward;           // the call, what was saved, d_out -> what the node gives
};

class TorchNode {
 public:
  TorchNode(std::shared_ptr<TorchTensors> torch, nb::object parameter_type, nb::dict engines, nb::dict dispatch,
            nb::dict forward_mode, Asked asked, Used used)
      : torch_(std::move(torch)),
        parameter_type_(std::move(parameter_type)),
        engines_(std::move(engines)),
        dispatch_(std::move(dispatch)),
        forward_mode_(std::move(forward_mode)),
        asked_(std::move(asked)),
        used_(std::move(used)) {}

  // None: somebody looks, or wants a gradient of something else than q, k and v.
  nb::object attend(nb::handle face, nb::handle q, nb::handle k, nb::handle v, nb::handle words) const {
    if (!is_plain(q) || !is_plain(k) || !is_plain(v) || has_tangents() || anybody(asked_.in_front)) return nb::none();
    const bool gradients = is_true(called(asked_.grad_enabled));
    const bool wanted = gradients && (requires_grad(q) || requires_grad(k) || requires_grad(v));
    if (!are_plain(words, gradients)) return nb::none();
    if (wanted) {
      PyObject* sinks = item(words, sinks_);  // they are in the LSE, and backward does without
      if (sinks != nullptr && sinks != Py_None) return nb::none();
      return called(used_.apply, face, q, k, v, words);
    }
    const std::array inputs{q.ptr(), k.ptr(), v.ptr()};
    const nb::object found =
        remembered<wavejit_attention_forward_arguments>(forward_, step * number(face), inputs, words);
    if (!found.is_valid()) return called(used_.without_gradients, face, q, k, v, words);
    return nb::borrow(PyTuple_GetItem(found.ptr(), 0));
  }

  nb::object forward(nb::handle ctx, nb::handle face, nb::handle q, nb::handle k, nb::handle v,
                     nb::handle words) const {
    const std::array inputs{q.ptr(), k.ptr(), v.ptr()};
    nb::object found =
        remembered<wavejit_attention_forward_arguments>(forward_, step * number(face) + for_gradients, inputs, words);
    if (!found.is_valid()) found = called(used_.forward, face, q, k, v, words);
    nb::object out = nb::borrow(PyTuple_GetItem(found.ptr(), 0));
    std::vector<PyObject*> saved{ctx.ptr(), q.ptr(), k.ptr(), v.ptr(), out.ptr(), PyTuple_GetItem(found.ptr(), 1)};
    // Tensors among the words are saved as tensors are, which watches their versions.
    nb::object numbers = nb::borrow(words);
    std::vector<PyObject*> names;
    each_tensor(words, [&](PyObject* name, PyObject* tensor) {
      names.push_back(name);
      saved.push_back(tensor);
    });
    nb::object kept_names = owned(PyTuple_New(static_cast<Py_ssize_t>(names.size())));
    if (!names.empty()) {
      numbers = owned(PyDict_Copy(words.ptr()));
      for (std::size_t i = 0; i < names.size(); ++i) {
        PyTuple_SetItem(kept_names.ptr(), static_cast<Py_ssize_t>(i), Py_NewRef(names[i]));
        if (PyDict_DelItem(numbers.ptr(), names[i]) != 0) nb::raise_python_error();
      }
    }
    const nb::object call = owned(PyTuple_Pack(3, face.ptr(), numbers.ptr(), kept_names.ptr()));
    if (PyObject_SetAttr(ctx.ptr(), call_.ptr(), call.ptr()) != 0) nb::raise_python_error();
    owned(PyObject_VectorcallMethod(save_.ptr(), saved.data(), saved.size(), nullptr));
    return out;
  }

  nb::object backward(nb::handle ctx, nb::handle d_out) const {
    const nb::object call = attribute(ctx, call_);
    const nb::object saved = attribute(ctx, saved_);  // once: checkpoints compute it anew
    if (!is_plain(d_out) || anybody(asked_.before_backward) || is_true(called(asked_.grad_enabled)))
      return called(used_.backward, call, saved, d_out);
    std::array<PyObject*, 6> inputs{};
    for (std::size_t i = 0; i < inputs.size() - 1; ++i) inputs[i] = entry(saved, i);
    inputs.back() = d_out.ptr();
    nb::object words = nb::borrow(entry(call, 1));
    PyObject* names = entry(call, 2);
    const Py_ssize_t count = PyTuple_Size(names);
    if (count != 0) words = owned(PyDict_Copy(words.ptr()));
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* tensor = entry(saved, inputs.size() - 1 + static_cast<std::size_t>(i));
      if (PyDict_SetItem(words.ptr(), PyTuple_GetItem(names, i), tensor) != 0) nb::raise_python_error();
    }
    // None for what forward took beside q, k and v: the face in front of them, the words behind.
    nb::object found =
        remembered<wavejit_attention_backward_arguments>(backward_, step * number(entry(call, 0)), inputs, words, 1, 1);
    return found.is_valid() ? found : called(used_.backward, call, saved, d_out);
  }

 private:
  static int number(nb::handle object) { return static_cast<int>(PyLong_AsLong(object.ptr())); }
  static PyObject* entry(nb::handle tuple, std::size_t place) {
    PyObject* found = PyTuple_GetItem(tuple.ptr(), static_cast<Py_ssize_t>(place));
    if (found == nullptr) nb::raise_python_error();
    return found;
  }
  static bool anybody(const std::vector<nb::object>& looks) {
    for (const nb::object& look : looks)
      if (is_true(called(look))) return true;
    return false;
  }
  bool is_plain(nb::handle object) const {
    return torch_->is_exact(object.ptr()) ||
           reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())) == parameter_type_.ptr();
  }
  bool requires_grad(nb::handle tensor) const { return attribute(tensor, requires_grad_).is(Py_True); }
  bool has_tangents() const {
    PyObject* level = item(forward_mode_, current_level_);
    return level == nullptr || PyLong_AsLong(level) >= 0;
  }
  template <typename Told>
  void each_tensor(nb::handle words, const Told& told) const {
    PyObject* name = nullptr;
    PyObject* value = nullptr;
    for (Py_ssize_t place = 0; PyDict_Next(words.ptr(), &place, &name, &value) != 0;)
      if (torch_->is_tensor(value)) told(name, value);
  }
  bool are_plain(nb::handle words, bool gradients) const {
    bool plain = true;
    each_tensor(words, [&](PyObject*, PyObject* tensor) {
      plain = plain && is_plain(tensor) && !(gradients && requires_grad(tensor));
    });
    return plain;
  }

  // What a call of shapes seen before made; nothing: it was not.
  template <typename Arguments>
  nb::object remembered(const nb::str& kind, int variant, std::span<PyObject* const> tensors, nb::handle words,
                        std::size_t in_front = 0, std::size_t behind = 0) const {
    const nb::object device = attribute(tensors.front(), device_);
    PyObject* engine = item(engines_, device);
    if (engine == nullptr) return {};
    const nb::object kinds = attribute(engine, calls_);
    const nb::object calls = nb::borrow(item(kinds, kind));
    if (!calls.is_valid()) return {};
    PyObject* stream_of = item(dispatch_, current_stream_);
    if (stream_of == nullptr) return {};
    const nb::object stream = called(nb::borrow(stream_of), device);
    const unsigned long long address = PyLong_AsUnsignedLongLong(stream.ptr());
    if (PyErr_Occurred() != nullptr) nb::raise_python_error();
    return nb::inst_ptr<TorchCalls<Arguments>>(calls)->run(address, variant, tensors, words.ptr(), in_front, behind);
  }

  std::shared_ptr<TorchTensors> torch_;
  nb::object parameter_type_;
  nb::dict engines_;       // by device
  nb::dict dispatch_;      // names of _dispatch.py
  nb::dict forward_mode_;  // names of torch.autograd.forward_ad
  Asked asked_;
  Used used_;
  nb::str forward_ = interned("forward");
  nb::str backward_ = interned("backward");
  nb::str sinks_ = interned("sinks");
  nb::str call_ = interned("call");
  nb::str save_ = interned("save_for_backward");
  nb::str saved_ = interned("saved_tensors");
  nb::str requires_grad_ = interned("requires_grad");
  nb::str current_level_ = interned("_current_level");
  nb::str device_ = interned("device");
  nb::str calls_ = interned("_torch_calls");
  nb::str current_stream_ = interned("current_stream");
};

}  // namespace

void bind_torch_node(nb::module_& module) {
  const auto made = [](TorchNode* self, std::shared_ptr<TorchTensors> torch, nb::object parameter_type,
                       nb::dict engines, nb::dict dispatch, nb::dict forward_mode,
                       const std::vector<nb::object>& in_front, const std::vector<nb::object>& before_backward,
                       nb::object grad_enabled, nb::object apply, nb::object forward, nb::object without_gradients,
                       nb::object backward) {
    new (self) TorchNode(std::move(torch), std::move(parameter_type), std::move(engines), std::move(dispatch),
                         std::move(forward_mode), {in_front, before_backward, std::move(grad_enabled)},
                         {std::move(apply), std::move(forward), std::move(without_gradients), std::move(backward)});
  };
  // Bound to what it is looked up on, as a class's own function.
  const auto backward_method = [](const nb::object& self) {
    return nb::cpp_function(
        [self](nb::handle ctx, nb::handle d_out) { return nb::inst_ptr<TorchNode>(self)->backward(ctx, d_out); },
        nb::is_method());
  };
  nb::class_<TorchNode>(module, "TorchNode", "Attention over PyTorch's tensors where nobody looks.")
      .def("__init__", made, nb::arg("torch"), nb::arg("parameter_type"), nb::arg("engines"), nb::arg("dispatch"),
           nb::arg("forward_mode"), nb::arg("in_front"), nb::arg("before_backward"), nb::arg("grad_enabled"),
           nb::arg("apply"), nb::arg("forward"), nb::arg("without_gradients"), nb::arg("backward"))
      .def("attend", &TorchNode::attend, nb::arg("face"), nb::arg("q"), nb::arg("k"), nb::arg("v"), nb::arg("words"))
      .def("forward", &TorchNode::forward, nb::arg("ctx"), nb::arg("face"), nb::arg("q"), nb::arg("k"), nb::arg("v"),
           nb::arg("words"))
      .def("backward_method", backward_method);
}

}  // namespace wavejit::python
