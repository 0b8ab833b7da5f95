# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import sys

from ._program import main

sys.exit(main())
