#include "cache/transfer.h"

#include <algorithm>
#include <exception>
#include <set>
#include <tuple>
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

namespace {

// An archive with what `fill` adds to it, kept under its name if that went well.
template <typename Fill>
ArchiveWriter::Outcome write_archive(IoInterface& io, const std::string& archive, Fill fill) {
  const std::string folder = archive.find('/') == std::string::npos ? "." : parent_of(archive);
  auto temporary = create_temporary(io, folder.empty() ? "/" : folder, readable_by_all);
  if (!temporary) return std::unexpected(temporary.error());
  ArchiveWriter writer(io, temporary->file.number(), temporary->path);
  ArchiveWriter::Outcome outcome = writer.begin();
  try {
    if (outcome) outcome = fill(writer);
    if (outcome) outcome = writer.finish();
  } catch (const std::exception& error) {
    outcome = std::unexpected(error.what());
  }
  if (!outcome) {
    discard(io, *temporary);
    return outcome;
  }
  return keep_as(io, *temporary, archive);
}

}  // namespace

std::expected<TransferResult, std::string> pack_entries(Cache& from, const std::string& archive,
                                                        const std::vector<std::string>& targets) {
  TransferResult result;
  std::set<std::pair<std::string, std::string>> seen;
  const auto fill = [&](ArchiveWriter& writer) {
    ArchiveWriter::Outcome outcome;
    const bool whole = from.visit([&](const Visited& visited) {
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
    if (outcome && !whole) outcome = not_read_to_its_end();
    return outcome;
  };
  if (auto written = write_archive(from.io(), archive, fill); !written) return std::unexpected(written.error());
  return result;
}

std::expected<TransferResult, std::string> push_entries(Cache& from, RemoteStore& to,
                                                        const std::vector<std::string>& targets) {
  TransferResult result;
  std::string problem;
  std::set<std::pair<std::string, std::string>> seen;
  const bool whole = from.visit([&](const Visited& visited) {
    if (!problem.empty()) return;
    if (visited.entry == nullptr) {
      ++result.damaged;
      return;
    }
    const Entry& entry = *visited.entry;
    if (!wanted(targets, entry.target_id)) return;
    if (!seen.emplace(visited.key_hex, visited.target_id).second) {
      ++result.present;
      return;
    }
    const auto kept = to.keep(digest_of(entry.key_text), entry.target_id, visited.file);
    if (!kept) {
      problem = kept.error().what;
      return;
    }
    ++result.copied;
    result.bytes += visited.file_bytes;
  });
  if (!problem.empty()) return std::unexpected(std::move(problem));
  if (!whole) return not_read_to_its_end();
  return result;
}

std::expected<TransferResult, std::string> pull_entries(RemoteStore& from, Cache& to,
                                                        const std::vector<std::string>& targets) {
  struct Name {
    Digest digest;
    std::string target_id;
  };
  std::vector<Name> names;
  const auto listed = from.list([&](const Digest& digest, const std::string& target_id) {
    if (is_target_id(target_id) && wanted(targets, target_id)) names.push_back({digest, target_id});
    return true;
  });
  if (!listed) return std::unexpected(listed.error().what);
  TransferResult result;
  for (const Name& name : names) {
    const auto bytes = from.fetch(name.digest, name.target_id);
    if (!bytes) {
      if (bytes.error().problem == RemoteProblem::fault) return std::unexpected(bytes.error().what);
      result.damaged += bytes.error().problem == RemoteProblem::damaged ? 1 : 0;  // or gone since it was listed
      continue;
    }
    const auto entry = parse(*bytes);
    if (!entry || entry->target_id != name.target_id || digest_of(entry->key_text) != name.digest) {
      ++result.damaged;
      continue;
    }
    const Key key(entry->key_text, entry->target_id);
    if (to.lookup(key)) {
      ++result.present;
      continue;
    }
    const auto published = to.publish(key, {.kernels = entry->kernels, .code_object = entry->code_object});
    if (published.published) {
      ++result.copied;
      result.bytes += bytes->size();
    } else {
      ++result.failed;
      if (result.first_failure.empty()) result.first_failure = published.reason;
    }
  }
  return result;
}

std::expected<void, std::string> pack_keys(Cache& from, const std::string& archive, std::vector<Key> keys) {
  const auto name = [](const Key& key) { return std::tie(key.target_id(), key.digest().bytes); };
  std::ranges::sort(keys, {}, name);
  const auto repeated = std::ranges::unique(keys, {}, name);
  keys.erase(repeated.begin(), repeated.end());
  return write_archive(from.io(), archive, [&](ArchiveWriter& writer) {
    ArchiveWriter::Outcome outcome;
    for (const Key& key : keys) {
      const auto hit = from.lookup(key);
      if (!hit) return ArchiveWriter::Outcome(std::unexpected("not in the cache (any more): " + key.text()));
      outcome = writer.add(key.digest(), hit->file());
      if (!outcome) break;
    }
    return outcome;
  });
}

}  // namespace wavejit::cache
