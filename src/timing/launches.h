// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Launches of one stream, by one row for all targets: what plans of calls weigh (templates/*/call) and what the clock of
// the simulated GPU counts is one figure.
#pragma once

#include "timing/rows.h"

namespace wavejit::timing {

inline constexpr LaunchRules stream = {
    .dependent = derived(
        1800,
        "between 800 and 2,400: MI300A rows of sarchlab/mgpusim (d01e70d5) at 2.1 GHz. One more launch takes 3,964 "
        "cycles of floydwarshall (16 to 64 nodes; 3,780 to 5,000 by fits over more sizes) and 2,803 of bitonicsort (1,024 "
        "to 4,096 elements; larger sizes fit no line), and 1,600 to 2,000 of them are the kernel's, by this model or a "
        "simpler one. 1,800 was chosen within that; mgpusim's authors fitted it, too"),
    .workgroup =
        derived(6.1,
                "MI300A rows of sarchlab/mgpusim (d01e70d5): floydwarshall of 512 to 4,096 nodes, by the slope "
                "of a launch's time over its workgroups of one wave, whatever the size"),
};
// A target without a figure of its own carries it over.
inline constexpr LaunchRules stream_elsewhere = {.dependent = carried_over(stream.dependent),
                                                 .workgroup = carried_over(stream.workgroup)};

}  // namespace wavejit::timing
