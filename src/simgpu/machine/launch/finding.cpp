// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/launch/finding.h"

#include <format>
#include <nlohmann/json.hpp>

#include "simgpu/machine/decode/function.h"
#include "simgpu/machine/launch/launch.h"
#include "simgpu/machine/wave/wave.h"
#include "simgpu/process/symbol_names.h"

namespace wavejit::simgpu {
namespace {

std::string place_of(const std::string& instruction, std::uint64_t offset, const std::string& function,
                     const std::optional<SourceLine>& line) {
  return std::format("{} at offset {:#x} of {}{}", instruction.empty() ? "unknown bytes" : "'" + instruction + "'",
                     offset, short_name(function), line ? " (" + line->text() + ")" : "");
}

void add_line(nlohmann::ordered_json& object, const std::optional<SourceLine>& line) {
  if (!line) return;
  object["file"] = line->file;
  object["line"] = line->line;
}

}  // namespace

std::string name_instruction(const Instruction& instruction) {
  const Function& function = *instruction.function;
  return place_of(function.text(instruction), instruction.offset_in_function, function.name,
                  function.line(instruction));
}

Finding finding_at(const Wave& wave, const Instruction& instruction, int lane) {
  const Workgroup& workgroup = *wave.workgroup;
  Finding finding;
  finding.check = "fault";
  finding.kernel = workgroup.launch->kernel->name;
  finding.function = instruction.function->name;
  finding.instruction = instruction.function->text(instruction);
  finding.encoding = instruction.function->encoding(instruction);
  finding.offset = instruction.offset_in_function;
  finding.written_at = instruction.function->line(instruction);
  finding.workgroup = workgroup.id;
  finding.linear_workgroup = workgroup.linear_id;
  finding.wave = wave.index;
  finding.lane = lane;
  finding.place = &instruction;
  return finding;
}

std::string Finding::line() const {
  std::string result = std::format("kernel {}: {} [{}], workgroup ({}, {}, {}), wave {}", demangled(kernel),
                                   place_of(instruction, offset, function, written_at), encoding, workgroup[0],
                                   workgroup[1], workgroup[2], wave);
  if (lane >= 0) result += std::format(", lane {}", lane);
  result += ": ";
  if (check != "fault") result += check + ": ";
  return result + text;
}

std::string Finding::json() const {
  nlohmann::ordered_json object = {
      {"check", check},   {"kernel", kernel},       {"function", function}, {"instruction", instruction},
      {"offset", offset}, {"workgroup", workgroup}, {"wave", wave},         {"text", text}};
  add_line(object, written_at);
  if (lane >= 0) object["lane"] = lane;
  if (!source_instruction.empty()) {
    object["source"] = {{"instruction", source_instruction}, {"offset", source_offset}};
    add_line(object["source"], source_written_at);
    if (source_wave >= 0) object["source"]["wave"] = source_wave;
    if (source_workgroup) object["source"]["workgroup"] = *source_workgroup;
  }
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool worth_reporting(const Wave& wave, const Instruction& instruction, Check check, const Instruction* source) {
  return wave.workgroup->launch->wants(wave.workgroup->linear_id, check, &instruction, source);
}

Finding finding_of(const Wave& wave, const Instruction& instruction, Check check, int lane, std::string text,
                   Site source) {
  Finding finding = finding_at(wave, instruction, lane);
  finding.check = name_of(check);
  finding.text = std::move(text);
  if (source.instruction != nullptr) {
    finding.source = source.instruction;
    finding.source_instruction = source.instruction->function->text(*source.instruction);
    finding.source_offset = source.instruction->offset_in_function;
    finding.source_written_at = source.instruction->function->line(*source.instruction);
    finding.source_wave = source.wave;
    finding.source_workgroup = source.workgroup;
  }
  return finding;
}

void report(Wave& wave, const Instruction& instruction, Check check, int lane, std::string text, Site source) {
  wave.workgroup->launch->add(finding_of(wave, instruction, check, lane, std::move(text), source));
}

void fault(Wave& wave, const Instruction& instruction, const std::string& text, int lane, int code) {
  if (wave.state == WaveState::faulted) return;
  Finding finding = finding_at(wave, instruction, lane);
  finding.text = text;
  wave.workgroup->launch->fail(wave.workgroup->linear_id, code, finding.line(), finding.json());
  wave.stop(WaveState::faulted);
}

}  // namespace wavejit::simgpu
