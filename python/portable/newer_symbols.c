// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What code that was compiled with Debian 13's headers wants of its C library and Debian 12's has not. In the wheels
// alone, and hidden: no other library of the process sees these. docs/python.md lists them;
// scripts/wheel/check_portable.py compares.
//
// strtol and its siblings have these names where C23 is asked for (GLIBC_2.38). For base 0 and 2 they then also read
// binary digits after 0b; here they do not, as in C17.
#include <stdlib.h>

long __isoc23_strtol(const char* text, char** end, int base);
unsigned long __isoc23_strtoul(const char* text, char** end, int base);
long long __isoc23_strtoll(const char* text, char** end, int base);
unsigned long long __isoc23_strtoull(const char* text, char** end, int base);

long __isoc23_strtol(const char* text, char** end, int base) { return strtol(text, end, base); }
unsigned long __isoc23_strtoul(const char* text, char** end, int base) { return strtoul(text, end, base); }
long long __isoc23_strtoll(const char* text, char** end, int base) { return strtoll(text, end, base); }
unsigned long long __isoc23_strtoull(const char* text, char** end, int base) { return strtoull(text, end, base); }
