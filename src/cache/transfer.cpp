#include "cache/transfer.h"

#include <algorithm>
#include <exception>
#include <set>
#include <utility>

#include "cache/archive.h"
#include "cache/files.h"

namespace wavejit::cache {

namespace {

bool wanted(const std::vector<std::string>& targets, std::string_view target) {
  return targets.empty() || std::ranges::find(targets, target) != targets.end();
}

std::unexpected<std::string> not_read_to_its_end() {
  return std::unexpected(std::string("a folder of the source could not be read to its end"));
}

}  // namespace

std::expected<TransferResult, std::string> copy_entries(Cache& from, Cache& to,
                                                        const std::vector<std::string>& targets) {
  TransferResult result;
  const bool whole = from.visit([&](const Visited& visited) {
    if (visited.entry == nullptr) {
      ++result.damaged;
      return;
    }
    const Entry& entry = *visited.entry;
    if (!wanted(targets, entry.target_id)) return;
    const Key key(entry.key_text, entry.target_id);
    if (to.lookup(key)) {
      ++result.present;
      return;
    }
    const auto published = to.publish(key, {.kernels = entry.kernels, .code_object = entry.code_object});
    if (published.published) {
      ++result.copied;
      result.bytes += visited.file_bytes;
    } else {
      ++result.failed;
      if (result.first_failure.empty()) result.first_failure = published.reason;
    }
  });
  if (!whole) return not_read_to_its_end();
  return result;
}

std::expected<TransferResult, std::string> pack_entries(Cache& from, const std::string& archive,
                                                        const std::vector<std::string>& targets) {
  IoInterface& io = from.io();
  const std::string folder = archive.find('/') == std::string::npos ? "." : parent_of(archive);
  auto temporary = create_temporary(io, folder.empty() ? "/" : folder, readable_by_all);
  if (!temporary) return std::unexpected(temporary.error());
  ArchiveWriter writer(io, temporary->file.number(), temporary->path);
  TransferResult result;
  Outcome outcome = writer.begin();
  std::set<std::pair<std::string, std::string>> seen;
  bool whole = false;
  try {
    whole = from.visit([&](const Visited& visited) {
      if (!outcome) return;
      if (visited.entry == nullptr) {
        ++result.damaged;
        return;
      }
      if (!wanted(targets, visited.entry->target_id)) return;
      if (!seen.emplace(visited.key_hex, visited.target_id).second) {
        ++result.present;
        return;
      }
      outcome = writer.add(digest_of(visited.entry->key_text), visited.file);
      ++result.copied;
      result.bytes += visited.file_bytes;
    });
    if (outcome) outcome = writer.finish();
  } catch (const std::exception& error) {
    outcome = std::unexpected(error.what());
  }
  if (!outcome || !whole) {
    discard(io, *temporary);
    if (!outcome) return std::unexpected(outcome.error());
    return not_read_to_its_end();
  }
  if (outcome = keep_as(io, *temporary, archive); !outcome) return std::unexpected(outcome.error());
  return result;
}

}  // namespace wavejit::cache
