# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# wavejit_fmt: fmt's headers, and its code compiled here. Debian has no static fmt, and the shared one has another name in
# every release (libfmt9, libfmt10), which would tie a package to one of them. Header-only use, fmt's own answer, does not
# compile with clang 22: format strings inside fmt 10's format-inl.h are no constant expressions to it. So that one file is
# compiled without the compile-time check, and everything of ours with it.
get_target_property(wavejit_fmt_include fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/fmt_inside.cpp @ONLY CONTENT
"// Generated: fmt's code (cmake/static_fmt.cmake).
#define FMT_CONSTEVAL
#include <fmt/format-inl.h>
// What fmt/format.h declares and leaves to its library.
template void fmt::detail::vformat_to(buffer<char>&, string_view, typename vformat_args<>::type, locale_ref);
template auto fmt::detail::thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template auto fmt::detail::decimal_point_impl<char>(locale_ref) -> char;
template auto fmt::detail::dragonbox::to_decimal(float) noexcept -> dragonbox::decimal_fp<float>;
template auto fmt::detail::dragonbox::to_decimal(double) noexcept -> dragonbox::decimal_fp<double>;
")
add_library(wavejit_fmt STATIC ${CMAKE_BINARY_DIR}/generated/fmt_inside.cpp)
target_include_directories(wavejit_fmt SYSTEM PUBLIC ${wavejit_fmt_include})
