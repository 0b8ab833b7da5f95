// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/sim/reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "tools/output_file.h"

namespace wavejit::tools {

namespace {

using Json = nlohmann::ordered_json;

// A folder of this program's own, gone with it.
class ScratchFolder {
 public:
  static Result<ScratchFolder> make() {
    std::error_code error;
    std::string path = (std::filesystem::temp_directory_path(error) / "wavejit-sim-XXXXXX").string();
    if (error || ::mkdtemp(path.data()) == nullptr) {
      return failed(ExitCode::file, fmt::format("{}: no folder for reports can be made there: {}; TMPDIR names another",
                                                path, error ? error.message() : std::strerror(errno)));
    }
    return ScratchFolder(std::move(path));
  }
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ScratchFolder& operator=(ScratchFolder&&) = delete;
  ~ScratchFolder() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  const std::string& path() const { return path_; }

 private:
  explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// By process number, so that the order is the same as far as it can be.
std::vector<Json> read_reports(const std::string& folder) {
  std::vector<Json> reports;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".json") continue;
    std::ifstream file(entry.path());
    Json report = Json::parse(file, nullptr, false);
    if (report.is_object()) reports.push_back(std::move(report));
  }
  std::ranges::sort(reports, {}, [](const Json& report) { return report.value("process", 0); });
  return reports;
}

std::uint64_t findings_of(const Json& report) {
  std::uint64_t sum = 0;
  if (!report.contains("findings")) return sum;
  for (const auto& [check, count] : report["findings"].items()) sum += count.get<std::uint64_t>();
  return sum;
}

std::uint64_t sum_of(const std::vector<Json>& reports, const char* field) {
  std::uint64_t sum = 0;
  for (const Json& report : reports) sum += report.value(field, std::uint64_t{0});
  return sum;
}

}  // namespace

Result<ExitCode> run_with_reports(const ReportedRun& run) {
  auto output = open_if_named("json", run.json);
  if (!output) return std::unexpected(output.error());
  auto folder = ScratchFolder::make();
  if (!folder) return std::unexpected(folder.error());
  ::setenv(run.variable.c_str(), (folder->path() + "/%p.json").c_str(), 1);

  const auto end = run_child(run.program);
  if (!end) return std::unexpected(end.error());

  const std::vector<Json> reports = read_reports(folder->path());
  std::uint64_t findings = 0;
  for (const Json& report : reports) findings += findings_of(report);
  if (reports.empty()) fmt::print(stderr, "wavejit sim: no process of the program used a simulated GPU\n");
  if (*output) {
    Json all = {{"program", run.program}};
    if (end->signal != 0) all["signal"] = end->signal;
    if (end->signal == 0) all["exit_code"] = end->code;
    all["findings"] = findings;
    all["launches"] = sum_of(reports, "launches");
    if (std::ranges::any_of(reports, [](const Json& report) { return report.contains("cycles"); }))
      all["cycles"] = sum_of(reports, "cycles");
    all["processes"] = reports;
    if (auto written = (*output)->finish(all.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"); !written)
      return std::unexpected(written.error());
  }
  const int code = end->shell_code();
  if (code == 0 && findings != 0 && run.fail_on_findings) return ExitCode::check_failed;
  return static_cast<ExitCode>(code);
}

}  // namespace wavejit::tools
