// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cache/transfer.h"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <set>
#include <tuple>
#include <utility>

#include "cache/archive.h"
#include "cache/files.h"
#include "cache/layer.h"

namespace wavejit::cache {

namespace {

bool wanted(const std::vector<std::string>& targets, std::string_view target) {
  return targets.empty() || std::ranges::find(targets, target) != targets.end();
}

using Done = std::expected<void, std::string>;

// Published, unless it is there.
void copy_one(Cache& to, const Entry& entry, std::uint64_t bytes, TransferResult& result) {
  const Key key(entry.key_text, entry.target_id);
  if (to.lookup(key)) {
    ++result.present;
    return;
  }
  const auto published = to.publish(key, {.kernels = entry.kernels, .code_object = entry.code_object});
  if (published.published) {
    ++result.copied;
    result.bytes += bytes;
  } else {
    ++result.failed;
    if (result.first_failure.empty()) result.first_failure = published.reason;
  }
}

// Calls take(visited) for every whole entry of `from` for one of `targets` until it fails.
template <typename Take>
Done each(Cache& from, const std::vector<std::string>& targets, TransferResult& result, Take take) {
  Done done;
  const bool whole = from.visit_while([&](const Visited& visited) {
    if (visited.entry == nullptr) {
      ++result.damaged;
    } else if (wanted(targets, visited.entry->target_id)) {
      done = take(visited);
    }
    return done.has_value();
  });
  if (done && !whole) return std::unexpected(std::string("a folder of the source could not be read to its end"));
  return done;
}

// The same where one name is sent once: the first of two layers that have it counts.
template <typename Send>
Done each_once(Cache& from, const std::vector<std::string>& targets, TransferResult& result, Send send) {
  std::set<std::pair<std::string, std::string>> seen;
  return each(from, targets, result, [&](const Visited& visited) -> Done {
    if (!seen.emplace(visited.key_hex, visited.target_id).second) {
      ++result.present;
      return {};
    }
    Done sent = send(visited);
    if (sent) {
      ++result.copied;
      result.bytes += visited.file_bytes;
    }
    return sent;
  });
}

}  // namespace

std::expected<TransferResult, std::string> copy_entries(Cache& from, Cache& to,
                                                        const std::vector<std::string>& targets) {
  TransferResult result;
  auto done = each(from, targets, result, [&](const Visited& visited) -> Done {
    copy_one(to, *visited.entry, visited.file_bytes, result);
    return {};
  });
  if (!done) return std::unexpected(std::move(done.error()));
  return result;
}

namespace {

std::string folder_of(const std::string& archive) {
  if (archive.find('/') == std::string::npos) return ".";
  std::string folder = parent_of(archive);
  return folder.empty() ? "/" : folder;
}

// An archive with what `fill` adds to it, kept under its name if that went well.
template <typename Fill>
ArchiveWriter::Outcome write_archive(IoInterface& io, const std::string& archive, Fill fill) {
  auto temporary = create_temporary(io, folder_of(archive), readable_by_all);
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
  const auto fill = [&](ArchiveWriter& writer) -> ArchiveWriter::Outcome {
    auto done = each_once(from, targets, result, [&](const Visited& visited) {
      return writer.add(digest_of(visited.entry->key_text), visited.file);
    });
    // Nothing to pack is a mistake of whoever asked, and an archive that is there may be worth much.
    if (done && result.copied == 0) {
      return std::unexpected("there is nothing to pack" +
                             (result.damaged == 0 ? "" : ": " + std::to_string(result.damaged) + " damaged entries") +
                             "; " + archive + " is not written");
    }
    return done;
  };
  if (auto written = write_archive(from.io(), archive, fill); !written) return std::unexpected(written.error());
  return result;
}

std::expected<TransferResult, std::string> push_entries(Cache& from, RemoteStore& to,
                                                        const std::vector<std::string>& targets) {
  TransferResult result;
  auto done = each_once(from, targets, result, [&](const Visited& visited) -> Done {
    const auto kept = to.keep(digest_of(visited.entry->key_text), visited.entry->target_id, visited.file);
    if (!kept) return std::unexpected(kept.error().what);
    return {};
  });
  if (!done) return std::unexpected(std::move(done.error()));
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
    if (to.has(name.digest, name.target_id)) {
      ++result.present;
      continue;
    }
    const auto bytes = from.fetch(name.digest, name.target_id);
    if (!bytes) {
      if (bytes.error().problem == RemoteProblem::fault) return std::unexpected(bytes.error().what);
      result.damaged += bytes.error().problem == RemoteProblem::damaged ? 1 : 0;  // or gone since it was listed
      continue;
    }
    const auto entry = parse_entry_named(name.digest, name.target_id, *bytes);
    if (entry) {
      copy_one(to, *entry, bytes->size(), result);
    } else {
      ++result.damaged;
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

namespace {

// Where the folder is missing, in the nearest one above it: nothing is made for a question.
std::expected<void, std::string> check_folder(IoInterface& io, std::string folder) {
  auto found = io.stat(folder);
  while (!found && found.error() == ENOENT && folder.size() > 1) {
    folder = folder.find('/') == std::string::npos ? "." : parent_of(folder);
    if (folder.empty()) folder = "/";
    found = io.stat(folder);
  }
  if (found && found->type != FileType::directory) return cannot("write into", folder, ENOTDIR);
  auto temporary = create_temporary(io, folder);
  if (!temporary) return std::unexpected(std::move(temporary.error()));
  discard(io, *temporary);
  return {};
}

}  // namespace

std::expected<void, std::string> check_writable(Cache& to) {
  for (const Layer& layer : to.options().layers) {
    if (!layer.writable) continue;
    if (auto good = check_folder(to.io(), layer.root); !good) return good;
  }
  return {};
}

std::expected<void, std::string> check_archive_place(Cache& from, const std::string& archive) {
  if (const auto status = from.io().stat(archive); status && status->type == FileType::directory)
    return std::unexpected("it is a folder; accepted: a file's name, new or of an archive to be replaced");
  return check_folder(from.io(), folder_of(archive));
}

}  // namespace wavejit::cache
