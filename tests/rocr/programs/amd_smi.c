// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The names of AMD's monitoring library that AMD's ROCr tests are linked with and that no package has for Debian 13: a
// machine on which nothing is monitored. They print temperatures and clocks when asked to; no test depends on them.
#include <stddef.h>
#include <stdint.h>

enum { success = 0, not_supported = 2 };

int amdsmi_init(uint64_t flags) {
  (void)flags;
  return success;
}
int amdsmi_shut_down(void) { return success; }
// There are no sockets and no processors.
int amdsmi_get_socket_handles(uint32_t* count, void* handles) {
  (void)handles;
  if (count != NULL) *count = 0;
  return success;
}
int amdsmi_get_processor_handles(void* socket, uint32_t* count, void* handles) {
  (void)socket;
  return amdsmi_get_socket_handles(count, handles);
}
int amdsmi_get_clk_freq(void) { return not_supported; }
int amdsmi_get_gpu_board_info(void) { return not_supported; }
int amdsmi_get_gpu_fan_speed(void) { return not_supported; }
int amdsmi_get_gpu_fan_speed_max(void) { return not_supported; }
int amdsmi_get_gpu_id(void) { return not_supported; }
int amdsmi_get_gpu_overdrive_level(void) { return not_supported; }
int amdsmi_get_gpu_perf_level(void) { return not_supported; }
int amdsmi_get_processor_type(void) { return not_supported; }
int amdsmi_get_temp_metric(void) { return not_supported; }
