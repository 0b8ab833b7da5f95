// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "exchange.h"

#include <dlpack/dlpack.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "address.h"
#include "interpreter.h"
#include "wavejit/wavejit.hpp"

namespace wavejit::python {

namespace {

// The names that the protocol gives a capsule before and after somebody has taken what it holds.
struct CapsuleNames {
  const char* fresh;
  const char* taken;
};
constexpr CapsuleNames plain{.fresh = "dltensor", .taken = "used_dltensor"};
constexpr CapsuleNames versioned{.fresh = "dltensor_versioned", .taken = "used_dltensor_versioned"};

// A tensor that another library lent. Its deleter runs once, when the last array that looks at it is gone.
class BorrowedTensor {
 public:
  explicit BorrowedTensor(const nb::object& capsule) {
    PyObject* object = capsule.ptr();
    if (PyCapsule_IsValid(object, versioned.fresh) != 0) {
      auto* managed = static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(object, versioned.fresh));
      if (managed->version.major != DLPACK_MAJOR_VERSION)
        throw Error(WAVEJIT_INVALID_ARGUMENT,
                    ("DLPack version " + std::to_string(managed->version.major) + "; accepted: version 1").c_str());
      versioned_ = managed;
      tensor_ = &managed->dl_tensor;
      read_only_ = (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
      PyCapsule_SetName(object, versioned.taken);
    } else if (PyCapsule_IsValid(object, plain.fresh) != 0) {
      plain_ = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(object, plain.fresh));
      tensor_ = &plain_->dl_tensor;
      PyCapsule_SetName(object, plain.taken);
    } else {
      throw Error(WAVEJIT_INVALID_ARGUMENT, "no DLPack capsule, or one that was used; accepted: a fresh dltensor");
    }
  }
  ~BorrowedTensor() {
    if (versioned_ != nullptr && versioned_->deleter != nullptr) versioned_->deleter(versioned_);
    if (plain_ != nullptr && plain_->deleter != nullptr) plain_->deleter(plain_);
  }
  BorrowedTensor(const BorrowedTensor&) = delete;
  BorrowedTensor& operator=(const BorrowedTensor&) = delete;

  std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(tensor_->data) + tensor_->byte_offset; }
  nb::tuple device() const {
    return nb::make_tuple(static_cast<int>(tensor_->device.device_type), tensor_->device.device_id);
  }
  // code, bits, lanes
  nb::tuple dtype() const { return nb::make_tuple(tensor_->dtype.code, tensor_->dtype.bits, tensor_->dtype.lanes); }
  std::vector<std::int64_t> shape() const { return {tensor_->shape, tensor_->shape + tensor_->ndim}; }
  // Without strides a tensor lies row after row.
  std::vector<std::int64_t> strides() const {
    if (tensor_->strides != nullptr) return {tensor_->strides, tensor_->strides + tensor_->ndim};
    std::vector<std::int64_t> strides(static_cast<std::size_t>(tensor_->ndim), 1);
    for (int i = tensor_->ndim - 2; i >= 0; --i) strides[i] = strides[i + 1] * tensor_->shape[i + 1];
    return strides;
  }
  bool read_only() const { return read_only_; }

 private:
  DLManagedTensorVersioned* versioned_ = nullptr;
  DLManagedTensor* plain_ = nullptr;
  DLTensor* tensor_ = nullptr;
  bool read_only_ = false;
};

// What a capsule of ours holds: the description, and the Python object whose memory it is.
template <typename Managed>
struct LentTensor {
  Managed managed;  // filled by lend
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  nb::object owner;
};

template <typename Managed>
void give_back(Managed* managed) {
  const Held held;  // whoever borrowed it may be without
  if (!held) return;
  const std::unique_ptr<LentTensor<Managed>> lent(static_cast<LentTensor<Managed>*>(managed->manager_ctx));
}

template <typename Managed>
void drop_capsule(PyObject* capsule, const char* fresh) {
  if (PyCapsule_IsValid(capsule, fresh) == 0) return;  // taken: its taker gives it back
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, fresh));
  managed->deleter(managed);
}
void drop_plain(PyObject* capsule) { drop_capsule<DLManagedTensor>(capsule, plain.fresh); }
void drop_versioned(PyObject* capsule) { drop_capsule<DLManagedTensorVersioned>(capsule, versioned.fresh); }

struct Description {
  nb::object owner;
  std::uintptr_t address;
  DLDataType dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  DLDevice device;
};

template <typename Managed>
std::unique_ptr<LentTensor<Managed>> lend(Description description) {
  auto lent = std::make_unique<LentTensor<Managed>>();
  std::memset(&lent->managed, 0, sizeof lent->managed);
  lent->shape = std::move(description.shape);
  lent->strides = std::move(description.strides);
  lent->owner = std::move(description.owner);
  lent->managed.manager_ctx = lent.get();
  lent->managed.deleter = give_back<Managed>;
  DLTensor& tensor = lent->managed.dl_tensor;
  tensor.data = pointer_at<void*>(description.address);
  tensor.device = description.device;
  tensor.ndim = static_cast<std::int32_t>(lent->shape.size());
  tensor.dtype = description.dtype;
  tensor.shape = lent->shape.data();
  tensor.strides = lent->strides.data();
  return lent;
}

template <typename Managed>
nb::object capsule_of(std::unique_ptr<LentTensor<Managed>> lent, const char* name, PyCapsule_Destructor destructor) {
  PyObject* capsule = PyCapsule_New(&lent->managed, name, destructor);
  if (capsule == nullptr) nb::raise_python_error();
  (void)lent.release();  // the capsule's, or its taker's
  return nb::steal(capsule);
}

nb::object export_dlpack(nb::object owner, std::uintptr_t address, int code, int bits, std::vector<std::int64_t> shape,
                         std::vector<std::int64_t> strides, int device_type, int device_id, bool with_version) {
  if (shape.size() != strides.size()) throw nb::value_error("shape and strides differ in length");
  Description description{
      .owner = std::move(owner),
      .address = address,
      .dtype = {.code = static_cast<std::uint8_t>(code), .bits = static_cast<std::uint8_t>(bits), .lanes = 1},
      .shape = std::move(shape),
      .strides = std::move(strides),
      .device = {.device_type = static_cast<DLDeviceType>(device_type), .device_id = device_id}};
  if (!with_version) return capsule_of(lend<DLManagedTensor>(std::move(description)), plain.fresh, drop_plain);
  auto lent = lend<DLManagedTensorVersioned>(std::move(description));
  lent->managed.version = {.major = DLPACK_MAJOR_VERSION, .minor = 0};
  return capsule_of(std::move(lent), versioned.fresh, drop_versioned);
}

}  // namespace

void bind_exchange(nb::module_& module) {
  nb::class_<BorrowedTensor>(module, "BorrowedTensor", "What a DLPack capsule holds; taken from it.")
      .def(nb::init<const nb::object&>(), nb::arg("capsule"))
      .def_prop_ro("address", &BorrowedTensor::address)
      .def_prop_ro("device", &BorrowedTensor::device)
      .def_prop_ro("dtype", &BorrowedTensor::dtype)
      .def_prop_ro("shape", &BorrowedTensor::shape)
      .def_prop_ro("strides", &BorrowedTensor::strides)
      .def_prop_ro("read_only", &BorrowedTensor::read_only);
  module.def("export_dlpack", &export_dlpack, nb::arg("owner"), nb::arg("address"), nb::arg("code"), nb::arg("bits"),
             nb::arg("shape"), nb::arg("strides"), nb::arg("device_type"), nb::arg("device_id"), nb::arg("versioned"),
             "A DLPack capsule of memory that `owner` keeps.");
}

}  // namespace wavejit::python
