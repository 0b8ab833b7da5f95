// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A wave schedule for as long as this lives, on a simulated GPU. On another device nothing changes.
#pragma once

#include <optional>

#include "tools/simulated_gpu.h"

namespace wavejit::tools {

class Scheduled {
 public:
  // None: as it is.
  explicit Scheduled(std::optional<wavejit_simgpu_schedule> schedule) : gpu_(SimulatedGpu::resident()) {
    if (!gpu_) return;
    before_ = gpu_->settings();
    wavejit_simgpu_settings now = before_;
    if (schedule) now.schedule = *schedule;
    gpu_->set(now);
  }
  ~Scheduled() {
    if (gpu_) gpu_->set(before_);
  }
  Scheduled(const Scheduled&) = delete;
  Scheduled& operator=(const Scheduled&) = delete;

 private:
  std::optional<SimulatedGpu> gpu_;
  wavejit_simgpu_settings before_{};
};

}  // namespace wavejit::tools
