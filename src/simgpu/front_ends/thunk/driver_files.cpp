// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// lib/rocr/libdriver_files.so, which `wavejit sim` preloads into programs: files by which programs see that AMD's
// kernel driver and its GPUs are there, before they load ROCr. rocminfo looks at the first two, JAX counts the third.
//
//   /dev/kfd                        opens, and does nothing
//   /sys/module/amdgpu/initstate    says "live"
//   /sys/class/kfd                  the topology of the simulated GPUs: files that `wavejit sim` has written below the
//                                   folder that WAVEJIT_SIM_DRIVER_FILES names
//
// Every other file is what it is, and so are these on a machine that has them. It needs the C library alone.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr const char* driver = "/dev/kfd";
constexpr const char* state = "/sys/module/amdgpu/initstate";
constexpr const char* topology = "/sys/class/kfd";

bool is(const char* path, const char* other) { return path != nullptr && std::strcmp(path, other) == 0; }
bool is_ours(const char* path) { return is(path, driver) || is(path, state); }

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

// Where a path of the topology really lies. Null: it is none, or nobody has written one.
class Moved {
 public:
  explicit Moved(const char* path) {
    const std::size_t length = std::strlen(topology);
    if (path == nullptr || std::strncmp(path, topology, length) != 0) return;
    if (path[length] != '/' && path[length] != 0) return;
    const char* const folder = ::secure_getenv("WAVEJIT_SIM_DRIVER_FILES");
    if (folder == nullptr || *folder == 0) return;
    const int written = std::snprintf(path_, sizeof path_, "%s%s", folder, path + length);
    is_moved_ = written > 0 && written < static_cast<int>(sizeof path_);
  }
  const char* path() const { return is_moved_ ? path_ : nullptr; }

 private:
  bool is_moved_ = false;
  char path_[PATH_MAX];
};

// What `call` says of a path; where the machine has none, of the file that stands for it.
template <typename Call>
auto answer(const char* path, Call&& call, decltype(call(path)) failed) {
  const auto first = call(path);
  if (first != failed || errno != ENOENT) return first;
  const Moved moved(path);
  if (moved.path() != nullptr) return call(moved.path());
  errno = ENOENT;
  return first;
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

template <typename Open>
int open_of(const char* path, int flags, Open&& open) {
  const int file = answer(path, open, -1);
  return file >= 0 ? file : stand_in(path, flags);
}

std::FILE* fopen_of(const char* name, const char* path, const char* mode) {
  auto* const open = next<std::FILE*(const char*, const char*)>(name);
  std::FILE* const file =
      answer(path, [&](const char* at) { return open(at, mode); }, static_cast<std::FILE*>(nullptr));
  if (file != nullptr || mode == nullptr) return file;
  const int own = stand_in(path, std::strchr(mode, '+') != nullptr ? O_RDWR : O_RDONLY);
  return own < 0 ? nullptr : ::fdopen(own, mode);
}

// The mode of a file that is made when it is not there; the word is absent otherwise.
mode_t mode_of(int flags, std::va_list words) {
  return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(words, mode_t) : 0;
}

template <typename Info>
int stat_of(const char* name, const char* path, Info* info) {
  auto* const stat = next<int(const char*, Info*)>(name);
  return answer(path, [&](const char* at) { return stat(at, info); }, -1);
}

template <typename Info>
int fstatat_of(const char* name, int folder, const char* path, Info* info, int flags) {
  auto* const stat = next<int(int, const char*, Info*, int)>(name);
  return answer(path, [&](const char* at) { return stat(folder, at, info, flags); }, -1);
}

// As programs call it that were linked with a C library before 2.33.
template <typename Info>
int xstat_of(const char* name, int version, const char* path, Info* info) {
  auto* const stat = next<int(int, const char*, Info*)>(name);
  return answer(path, [&](const char* at) { return stat(version, at, info); }, -1);
}

template <typename Entry>
int scandir_of(const char* name, const char* path, Entry*** entries, int (*wants)(const Entry*),
               int (*compare)(const Entry**, const Entry**)) {
  auto* const scan =
      next<int(const char*, Entry***, int (*)(const Entry*), int (*)(const Entry**, const Entry**))>(name);
  return answer(path, [&](const char* at) { return scan(at, entries, wants, compare); }, -1);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

#define WAVEJIT_OPEN(name)                                                              \
  int name(const char* path, int flags, ...) {                                          \
    std::va_list words;                                                                 \
    va_start(words, flags);                                                             \
    const mode_t mode = mode_of(flags, words);                                          \
    va_end(words);                                                                      \
    auto* const open = next<int(const char*, int, ...)>(#name);                         \
    return open_of(path, flags, [&](const char* at) { return open(at, flags, mode); }); \
  }
WAVEJIT_OPEN(open)
WAVEJIT_OPEN(open64)
#define WAVEJIT_OPENAT(name)                                                                    \
  int name(int folder, const char* path, int flags, ...) {                                      \
    std::va_list words;                                                                         \
    va_start(words, flags);                                                                     \
    const mode_t mode = mode_of(flags, words);                                                  \
    va_end(words);                                                                              \
    auto* const open = next<int(int, const char*, int, ...)>(#name);                            \
    return open_of(path, flags, [&](const char* at) { return open(folder, at, flags, mode); }); \
  }
WAVEJIT_OPENAT(openat)
WAVEJIT_OPENAT(openat64)
std::FILE* fopen(const char* path, const char* mode) { return fopen_of("fopen", path, mode); }
std::FILE* fopen64(const char* path, const char* mode) { return fopen_of("fopen64", path, mode); }
int access(const char* path, int mode) {
  auto* const access = next<int(const char*, int)>("access");
  const int said = answer(path, [&](const char* at) { return access(at, mode); }, -1);
  return said != 0 && errno == ENOENT && is_ours(path) ? 0 : said;
}
int faccessat(int folder, const char* path, int mode, int flags) {
  auto* const access = next<int(int, const char*, int, int)>("faccessat");
  const int said = answer(path, [&](const char* at) { return access(folder, at, mode, flags); }, -1);
  return said != 0 && errno == ENOENT && is_ours(path) ? 0 : said;
}
DIR* opendir(const char* path) {
  auto* const open = next<DIR*(const char*)>("opendir");
  return answer(path, [&](const char* at) { return open(at); }, static_cast<DIR*>(nullptr));
}
int scandir(const char* path, dirent*** entries, int (*wants)(const dirent*),
            int (*compare)(const dirent**, const dirent**)) {
  return scandir_of("scandir", path, entries, wants, compare);
}
int scandir64(const char* path, dirent64*** entries, int (*wants)(const dirent64*),
              int (*compare)(const dirent64**, const dirent64**)) {
  return scandir_of("scandir64", path, entries, wants, compare);
}
int stat(const char* path, struct stat* info) { return stat_of("stat", path, info); }
int stat64(const char* path, struct stat64* info) { return stat_of("stat64", path, info); }
int lstat(const char* path, struct stat* info) { return stat_of("lstat", path, info); }
int lstat64(const char* path, struct stat64* info) { return stat_of("lstat64", path, info); }
int fstatat(int folder, const char* path, struct stat* info, int flags) {
  return fstatat_of("fstatat", folder, path, info, flags);
}
int fstatat64(int folder, const char* path, struct stat64* info, int flags) {
  return fstatat_of("fstatat64", folder, path, info, flags);
}
int statx(int folder, const char* path, int flags, unsigned mask, struct statx* info) {
  auto* const stat = next<int(int, const char*, int, unsigned, struct statx*)>("statx");
  return answer(path, [&](const char* at) { return stat(folder, at, flags, mask, info); }, -1);
}
// The C library of before 2.33 names them so, and programs that were built against it call them so.
// NOLINTBEGIN(bugprone-reserved-identifier, readability-identifier-naming)
int __xstat(int version, const char* path, struct stat* info) { return xstat_of("__xstat", version, path, info); }
int __xstat64(int version, const char* path, struct stat64* info) { return xstat_of("__xstat64", version, path, info); }
int __lxstat(int version, const char* path, struct stat* info) { return xstat_of("__lxstat", version, path, info); }
int __lxstat64(int version, const char* path, struct stat64* info) {
  return xstat_of("__lxstat64", version, path, info);
}
// NOLINTEND(bugprone-reserved-identifier, readability-identifier-naming)

}  // extern "C"
#pragma GCC visibility pop
