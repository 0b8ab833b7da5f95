// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// PyTorch's tensors, read and made without linking PyTorch.
//
//   const TorchTensors torch(tensor_type, true);
//   torch.read(tensor)          where it lies, its sizes and strides: DLPack's C exchange, a capsule of the type
//   LikeTensor like(torch, tensor);
//   like.make()                 another one, from PyTorch's allocator
//
// Tensors are made by functions of libtorch in C, whose binary interface is kept from release to release
// (torch/csrc/inductor/aoti_torch/c/shim.h, torch/csrc/stable/c/shim.h). Python's own torch.empty costs four times
// that.
#pragma once

#include <dlpack/dlpack.h>
#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace wavejit::python {

namespace nb = nanobind;

// A tensor of libtorch, which it counts.
using TorchHandle = void*;

// What is called of PyTorch. A status of 0 is good.
struct TorchFunctions {
  int (*read)(void* object, DLTensor* tensor) = nullptr;
  int (*empty)(std::int64_t dimensions, const std::int64_t* sizes, const std::int64_t* strides, std::int32_t dtype,
               std::int32_t device_type, std::int32_t device, TorchHandle* made) = nullptr;
  int (*drop)(TorchHandle tensor) = nullptr;
  int (*address)(TorchHandle tensor, void** data) = nullptr;
  int (*dimensions)(TorchHandle tensor, std::int64_t* dimensions) = nullptr;
  int (*sizes)(TorchHandle tensor, std::int64_t** sizes) = nullptr;
  int (*strides)(TorchHandle tensor, std::int64_t** strides) = nullptr;
  int (*dtype)(TorchHandle tensor, std::int32_t* dtype) = nullptr;
  int (*device_type)(TorchHandle tensor, std::int32_t* type) = nullptr;
  int (*device)(TorchHandle tensor, std::int32_t* device) = nullptr;
  int (*from_python)(void* object, TorchHandle* tensor) = nullptr;
  int (*to_python)(TorchHandle tensor, void* type, void** object) = nullptr;
  int (*zero)(TorchHandle tensor) = nullptr;
  int (*fill)(TorchHandle tensor, double number) = nullptr;
};

class TorchTensors {
 public:
  // `tensor_type` is torch.Tensor. A PyTorch without all of its interface (before 2.14) is an error.
  explicit TorchTensors(nb::object tensor_type);

  // Whether the object's type is torch.Tensor itself, no subclass.
  bool is_exact(PyObject* object) const { return Py_TYPE(object) == type(); }
  bool is_tensor(PyObject* object) const {
    return Py_TYPE(object) == type() || PyType_IsSubtype(Py_TYPE(object), type()) != 0;
  }
  // Good until Python's lock is let go. False: it cannot be told so, a sparse one for example.
  bool read(PyObject* tensor, DLTensor& told) const;
  const TorchFunctions& functions() const { return functions_; }

 private:
  PyTypeObject* type() const { return reinterpret_cast<PyTypeObject*>(type_.ptr()); }

  nb::object type_;
  TorchFunctions functions_;
};

// A tensor that only the library sees; it goes back to PyTorch's allocator with this.
class TorchMemory {
 public:
  TorchMemory(const TorchFunctions& functions, TorchHandle tensor) : functions_(&functions), tensor_(tensor) {}
  ~TorchMemory() {
    if (tensor_ != nullptr) functions_->drop(tensor_);
  }
  TorchMemory(const TorchMemory&) = delete;
  TorchMemory& operator=(const TorchMemory&) = delete;

  explicit operator bool() const { return tensor_ != nullptr; }
  TorchHandle get() const { return tensor_; }
  std::uintptr_t address() const;

 private:
  const TorchFunctions* functions_;
  TorchHandle tensor_;
};

// What it takes to make a tensor like one that was there: the tensor itself is not kept.
class LikeTensor {
 public:
  LikeTensor(const TorchTensors& torch, PyObject* tensor);
  // A tensor of `count` contiguous numbers, of the type and on the device of `tensor`.
  LikeTensor(const TorchTensors& torch, PyObject* tensor, std::int64_t count);

  // Empty where PyTorch has no memory.
  TorchMemory make(const TorchFunctions& functions) const;

 private:
  std::vector<std::int64_t> sizes_;
  std::vector<std::int64_t> strides_;
  std::int32_t dtype_ = 0;
  std::int32_t device_type_ = 0;
  std::int32_t device_ = 0;
};

}  // namespace wavejit::python
