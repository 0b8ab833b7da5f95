// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Stream capture: what is put into a capturing stream becomes nodes of a graph instead of work, and what would break
// the capture is refused, as HIP 7.2 refuses it. While nobody captures, each question here costs one atomic load.
//
// Three kinds of calls break captures:
//   unsafe calls (allocating, freeing, loading modules) break those of the calling thread and all global ones, unless
//   the
//     thread said with hipThreadExchangeStreamCaptureMode that it knows what it does;
//   calls that wait for a device break all;
//   work in the null stream breaks all while a blocking stream captures, because the null stream would have to wait for
//   it.
// A broken capture is invalidated: its streams take no more work, and hipStreamEndCapture says so.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "hip_abi/hip_abi.h"
#include "simgpu/front_ends/hip/graph.h"
#include "simgpu/front_ends/hip/stream.h"

namespace wavejit::simgpu::hip_front {

class Capture;

// Before an unsafe call. hipSuccess, or hipErrorStreamCaptureUnsupported with captures invalidated.
hip_abi::hipError_t refuse_unsafe_call();
// Before a call that waits for a whole device.
hip_abi::hipError_t refuse_device_wait();
// Before a synchronising copy or fill, which goes through the null stream: hipErrorStreamCaptureImplicit.
hip_abi::hipError_t refuse_null_stream_wait();
// Before a call that waits for a stream or asks whether it is done.
hip_abi::hipError_t refuse_stream_wait(const std::shared_ptr<Stream>& stream);
// For calls that a capturing stream cannot take at all.
hip_abi::hipError_t refuse_in_capture(const std::shared_ptr<Stream>& stream);

// Makes a node of the work if the stream captures. Nothing: it does not, the work goes into the stream as always.
std::optional<hip_abi::hipError_t> capture_work(const std::shared_ptr<Stream>& stream, NodeWork work);

// Where a capture stood when an event was recorded in it.
struct CapturedPlace {
  std::weak_ptr<Capture> capture;
  std::vector<GraphNode*> nodes;
};
// Records an event in a capturing stream. Nothing: the stream does not capture.
std::optional<CapturedPlace> captured_place(const std::shared_ptr<Stream>& stream);
// hipStreamWaitEvent where stream or event belong to a capture: joins the stream into the event's capture, or refuses.
// `place` null: the event was recorded outside, or never when `recorded` is false. Nothing: neither captures.
std::optional<hip_abi::hipError_t> capture_wait(const std::shared_ptr<Stream>& stream, const CapturedPlace* place,
                                                bool recorded);
// hipEventQuery and hipEventSynchronize of an event that was last recorded in a capture which is still open.
hip_abi::hipError_t refuse_captured_event(const CapturedPlace& place);

// A stream that is destroyed takes its capture with it.
void abandon_capture(const std::shared_ptr<Stream>& stream);

}  // namespace wavejit::simgpu::hip_front
