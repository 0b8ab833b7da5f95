// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "options.h"

#include <getopt.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace serving {

namespace {

constexpr const char* usage = R"(usage: serving_engine [option…]

Serves requests on simulated GPUs by continuous batching and compares every token with a float64 reference.

  --ranks N         processes that share the heads of the model: 1 (default), 2 or 4, each with a GPU of its own
  --requests N      how many requests arrive, 1 … 64 (default 7)
  --seed N          of weights and prompts (default 7; with others, a close choice may fall to the other token)
  --target NAME     of the simulated GPUs (default gfx950)
  --hip             HIP's GPUs instead, one for each rank: AMD's, or what `wavejit sim` gives
  --cache-dir DIR   where kernels are kept (default: WAVEJIT_CACHE_DIR, then ~/.cache/wavejit)
  --archive FILE    take kernels from this archive too and write nothing
  --miss-log FILE   note what was on no disk
  --prepare         compile or fetch, and load, before the first request
  --list FILE       prepare the lines of this file (a miss log) instead of the engine's own
  --seal            a kernel that is missing after that is an error, not a stall
  --print-list      print the engine's own lines and serve nothing
  --decode-step N   serve nothing: report what one step of one sequence with N keys takes, 2 … 65536
  --help            this text

Exit codes: 0 all tokens right · 1 not · 2 the command line · 3 a rank failed
)";

[[noreturn]] void refuse(const char* option, const char* value, const char* accepted) {
  std::fprintf(stderr, "serving_engine: %s %s: accepted: %s\n", option, value, accepted);
  std::exit(2);
}

template <typename Number>
Number number(const char* option, const char* value, Number least, Number most, const char* accepted) {
  Number result = 0;
  const char* end = value + std::strlen(value);
  const auto [stopped, error] = std::from_chars(value, end, result);
  if (error != std::errc() || stopped != end || result < least || result > most) refuse(option, value, accepted);
  return result;
}

}  // namespace

Options read_options(int count, char** words) {
  static const option known[] = {{"ranks", required_argument, nullptr, 'r'},
                                 {"requests", required_argument, nullptr, 'n'},
                                 {"seed", required_argument, nullptr, 's'},
                                 {"target", required_argument, nullptr, 't'},
                                 {"hip", no_argument, nullptr, 'H'},
                                 {"cache-dir", required_argument, nullptr, 'c'},
                                 {"archive", required_argument, nullptr, 'a'},
                                 {"miss-log", required_argument, nullptr, 'm'},
                                 {"prepare", no_argument, nullptr, 'p'},
                                 {"list", required_argument, nullptr, 'l'},
                                 {"seal", no_argument, nullptr, 'S'},
                                 {"print-list", no_argument, nullptr, 'P'},
                                 {"decode-step", required_argument, nullptr, 'd'},
                                 {"help", no_argument, nullptr, 'h'},
                                 {nullptr, 0, nullptr, 0}};
  Options options;
  for (int word = 0; (word = getopt_long(count, words, "", known, nullptr)) != -1;) {
    switch (word) {
      case 'r':
        options.ranks = number("--ranks", optarg, 1, 4, "1, 2, 4");
        if (options.ranks == 3) refuse("--ranks", optarg, "1, 2, 4");
        break;
      case 'n':
        options.requests = number("--requests", optarg, 1, 64, "1 … 64");
        break;
      case 's':
        options.seed = number<std::uint64_t>("--seed", optarg, 0, UINT64_MAX, "0 … 2^64 - 1");
        break;
      case 't':
        options.target = optarg;
        break;
      case 'H':
        options.hip = true;
        break;
      case 'c':
        options.cache_directory = optarg;
        break;
      case 'a':
        options.archive = std::filesystem::absolute(optarg).string();
        break;
      case 'm':
        options.miss_log = optarg;
        break;
      case 'p':
        options.prepare = true;
        break;
      case 'l':
        options.prepare = true;
        options.list = optarg;
        break;
      case 'S':
        options.seal = true;
        break;
      case 'P':
        options.print_list = true;
        break;
      case 'd':
        options.decode_step = number("--decode-step", optarg, 2, 65536, "2 … 65536");
        break;
      case 'h':
        std::fputs(usage, stdout);
        std::exit(0);
      default:  // getopt has named the option
        std::fputs("serving_engine --help lists the options\n", stderr);
        std::exit(2);
    }
  }
  if (optind < count) refuse("word", words[optind], "options only; serving_engine --help lists them");
  if (options.decode_step != 0 && options.hip)
    refuse("--hip", "beside --decode-step", "simulated GPUs, whose clock predicts");
  return options;
}

}  // namespace serving
