// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lib/rocr/libdriver_files.so, which `wavejit sim` preloads into programs: files by which programs see that AMD's
// kernel driver is there, before they load ROCr. rocminfo looks at both.
//
//   /dev/kfd                        opens, and does nothing
//   /sys/module/amdgpu/initstate    says "live"
//
// Every other file is what it is, and so are these two on a machine that has them. It needs the C library alone.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace {

constexpr const char* driver = "/dev/kfd";
constexpr const char* state = "/sys/module/amdgpu/initstate";

bool is(const char* path, const char* other) { return path != nullptr && std::strcmp(path, other) == 0; }
bool is_ours(const char* path) { return is(path, driver) || is(path, state); }

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

// A descriptor for one of the two files when the machine has none of that name; −1 and errno as open left it otherwise.
int stand_in(const char* path, int flags) {
  if (errno != ENOENT || !is_ours(path)) return -1;
  if (is(path, driver)) return next<int(const char*, int, ...)>("open")("/dev/null", flags & ~O_CREAT);
  const int file = ::memfd_create("initstate", (flags & O_CLOEXEC) != 0 ? MFD_CLOEXEC : 0);
  constexpr char live[] = "live\n";
  if (file >= 0 && ::write(file, live, sizeof live - 1) > 0) ::lseek(file, 0, SEEK_SET);
  return file;
}

int open_of(const char* name, const char* path, int flags, mode_t mode) {
  const int file = next<int(const char*, int, ...)>(name)(path, flags, mode);
  return file >= 0 ? file : stand_in(path, flags);
}

std::FILE* fopen_of(const char* name, const char* path, const char* mode) {
  std::FILE* const file = next<std::FILE*(const char*, const char*)>(name)(path, mode);
  if (file != nullptr || mode == nullptr) return file;
  const int own = stand_in(path, std::strchr(mode, '+') != nullptr ? O_RDWR : O_RDONLY);
  return own < 0 ? nullptr : ::fdopen(own, mode);
}

// Of a file that is made when it is not there; the word is absent otherwise.
mode_t mode_of(int flags, std::va_list words) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(words, mode_t) : 0;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int open(const char* path, int flags, ...) {
  std::va_list words;
  va_start(words, flags);
  const mode_t mode = mode_of(flags, words);
  va_end(words);
  return open_of("open", path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  std::va_list words;
  va_start(words, flags);
  const mode_t mode = mode_of(flags, words);
  va_end(words);
  return open_of("open64", path, flags, mode);
}
std::FILE* fopen(const char* path, const char* mode) { return fopen_of("fopen", path, mode); }
std::FILE* fopen64(const char* path, const char* mode) { return fopen_of("fopen64", path, mode); }
int access(const char* path, int mode) {
  const int answer = next<int(const char*, int)>("access")(path, mode);
  return answer != 0 && errno == ENOENT && is_ours(path) ? 0 : answer;
}

}  // extern "C"
#pragma GCC visibility pop
