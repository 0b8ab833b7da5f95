// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cache/layer.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "cache/directory.h"

namespace wavejit::cache {

namespace {

std::expected<Entry, std::string> checked_for(const Key& key, Entry entry) {
  if (entry.key_text != key.text()) return std::unexpected("it is the entry of another key: '" + entry.key_text + "'");
  if (entry.target_id != key.target_id()) {
    return std::unexpected("it is for target '" + entry.target_id + "', not '" + key.target_id() + "'");
  }
  return entry;
}

}  // namespace

std::expected<Entry, std::string> parse_entry_of(const Key& key, std::span<const std::byte> bytes) {
  return parse(bytes).and_then([&](Entry entry) { return checked_for(key, std::move(entry)); });
}

std::expected<Entry, std::string> parse_entry_named(const Digest& digest, const std::string& target_id,
                                                    std::span<const std::byte> bytes) {
  auto entry = parse(bytes);
  if (entry && digest_of(entry->key_text) != digest)
    return std::unexpected("its name is not the SHA-256 of its key text");
  if (entry && !target_id.empty() && entry->target_id != target_id)
    return std::unexpected("it is for another target than its folder's");
  return entry;
}

std::optional<ReadFailure> distrust_of(IoInterface& io, const std::string& root) {
  const auto refused = [](std::string what) {
    return ReadFailure{.problem = ReadProblem::refused, .what = std::move(what)};
  };
  const auto status = uninterrupted([&] { return io.stat(root); });
  if (!status) {
    if (status.error() == ENOENT || status.error() == ENOTDIR) return std::nullopt;
    return ReadFailure{.problem = ReadProblem::fault, .what = "cannot look at it: " + errno_text(status.error())};
  }
  if (status->type != FileType::directory) return std::nullopt;  // no entry will be found below it
  const std::uint32_t user = io.effective_user();
  if (status->owner != user && status->owner != 0) {
    return refused("it belongs to user " + std::to_string(status->owner) + "; only a folder of user " +
                   std::to_string(user) + " or of root is trusted");
  }
  if ((status->permissions & S_IWOTH) != 0) return refused("everybody may write to it; chmod go-w makes it usable");
  if ((status->permissions & S_IWGRP) != 0) return refused("its group may write to it; chmod g-w makes it usable");
  return std::nullopt;
}

LayerMiss OpenLayer::miss(const ReadFailure& failure, const std::string& path) {
  switch (failure.problem) {
    case ReadProblem::absent:
      return {.problem = failure.problem, .what = {}};
    case ReadProblem::refused:
      return {.problem = failure.problem, .what = "refused " + path + ": " + failure.what};
    case ReadProblem::damaged:
      return {.problem = failure.problem, .what = "damaged entry " + path + ": " + failure.what};
    case ReadProblem::fault:
      return {.problem = failure.problem, .what = path + ": " + failure.what};
  }
  return {.problem = ReadProblem::fault, .what = {}};
}

std::expected<OpenLayer::Form, LayerMiss> OpenLayer::form() {
  if (layer_.writable) return Form::folder;
  const Form known = form_;
  if (known != Form::unknown) return known;
  const auto status = uninterrupted([&] { return io_->stat(layer_.root); });
  if (!status) {
    const bool absent = status.error() == ENOENT || status.error() == ENOTDIR;
    const bool first = !told_.exchange(true);
    return std::unexpected(
        LayerMiss{.problem = absent ? ReadProblem::absent : ReadProblem::fault,
                  .what = first ? "layer " + layer_.root + " cannot be looked at: " + errno_text(status.error()) : ""});
  }
  form_ = status->type == FileType::directory ? Form::folder : Form::archive;
  return form_;
}

std::expected<std::shared_ptr<const ArchiveReader>, LayerMiss> OpenLayer::archive() {
  const auto is = form();
  if (!is) return std::unexpected(is.error());
  if (*is == Form::folder) return nullptr;
  const std::scoped_lock lock(mutex_);
  if (archive_) return archive_;
  if (unusable_) return std::unexpected(*unusable_);
  auto opened = ArchiveReader::open(*io_, layer_.root);
  if (opened) return archive_ = std::make_shared<const ArchiveReader>(*std::move(opened));
  const ReadFailure& failure = opened.error();
  LayerMiss told{.problem = failure.problem, .what = "archive " + layer_.root + " is not used: " + failure.what};
  if (failure.problem == ReadProblem::damaged || failure.problem == ReadProblem::refused)
    unusable_ = LayerMiss{.problem = failure.problem, .what = {}};
  return std::unexpected(std::move(told));
}

std::expected<Hit, LayerMiss> OpenLayer::find(const Key& key) {
  const auto packed = archive();
  if (!packed) return std::unexpected(packed.error());
  if (*packed == nullptr) return find_in_folder(key);
  auto found = find_in_archive(**packed, key);
  if (!found && found.error().problem == ReadProblem::fault) {
    // A stale handle of a network file system, most likely: the next lookup opens what is there by then.
    const std::scoped_lock lock(mutex_);
    if (archive_ == *packed) archive_.reset();
  }
  return found;
}

std::expected<Hit, LayerMiss> OpenLayer::find_in_folder(const Key& key) {
  if (layer_.writable) {
    if (const auto distrust = distrust_of(*io_, layer_.root)) {
      if (distrust->problem != ReadProblem::refused) return std::unexpected(miss(*distrust, layer_.root));
      LayerMiss refused{.problem = distrust->problem, .what = {}};
      if (!told_.exchange(true)) {
        refused.what = "the cache folder " + layer_.root + " is not used: " + distrust->what +
                       ". Kernels compiled here stay in this process";
      }
      return std::unexpected(std::move(refused));
    }
  }
  const std::string path = entry_path(layer_.root, key.target_id(), key.digest());
  auto file = read_entry_file(*io_, path);
  if (!file) return std::unexpected(miss(file.error(), path));
  auto entry = parse_entry_of(key, file->view());
  if (!entry) return std::unexpected(miss({.problem = ReadProblem::damaged, .what = entry.error()}, path));
  return Hit(std::move(file->bytes), file->size, std::move(*entry), path, layer_.name, index_);
}

std::expected<Hit, LayerMiss> OpenLayer::find_in_archive(const ArchiveReader& archive, const Key& key) {
  ReadFailure failure{.problem = ReadProblem::absent, .what = {}};
  const std::string path = layer_.root + "#" + key.hex();
  for (const ArchiveRecord& record : archive.find(key.digest())) {
    auto bytes = archive.read(record);
    if (!bytes) {
      failure = bytes.error();
      continue;
    }
    auto entry = parse(bytes->view());
    // The same key text for another target is no fault of the archive's.
    if (entry && entry->key_text == key.text() && entry->target_id != key.target_id()) continue;
    if (entry) entry = checked_for(key, *std::move(entry));
    if (!entry) {
      failure = {.problem = ReadProblem::damaged, .what = entry.error()};
      continue;
    }
    return Hit(std::move(bytes->bytes), bytes->size, std::move(*entry), path, layer_.name, index_);
  }
  return std::unexpected(miss(failure, path));
}

}  // namespace wavejit::cache
