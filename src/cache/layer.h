// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Private to this folder: one layer as it turns out to be, a folder of entries or an archive.
#pragma once

#include <atomic>
#include <expected>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "cache/archive.h"
#include "cache/cache.h"
#include "cache/files.h"

namespace wavejit::cache {

// Why a layer has no entry to give. `what` is empty for what was told before, or needs no telling.
struct LayerMiss {
  ReadProblem problem;
  std::string what;  // a whole sentence, with the path
};

// What `bytes` hold must be the entry of exactly this key: a digest only names a file, and files get copied about.
std::expected<Entry, std::string> parse_entry_of(const Key& key, std::span<const std::byte> bytes);

// The same where only the name is known: the digest must be that of the entry's key text, and the target its own
// (empty: any).
std::expected<Entry, std::string> parse_entry_named(const Digest& digest, const std::string& target_id,
                                                    std::span<const std::byte> bytes);

// Why a folder must not be used as the user's: others could put code there. ReadProblem::fault if it cannot be looked
// at; a folder that is not there yet is fine.
std::optional<ReadFailure> distrust_of(IoInterface& io, const std::string& root);

// Safe from any thread. Looks at the file system at the first use, not before.
class OpenLayer {
 public:
  OpenLayer(IoInterface& io, Layer layer, std::size_t index) : io_(&io), layer_(std::move(layer)), index_(index) {}

  const Layer& description() const { return layer_; }
  std::expected<Hit, LayerMiss> find(const Key& key);
  // The archive, if that is what the layer is; null for folders. Opens it if that is still to be done.
  std::expected<std::shared_ptr<const ArchiveReader>, LayerMiss> archive();

 private:
  enum class Form : std::uint8_t { unknown, folder, archive };

  std::expected<Form, LayerMiss> form();
  std::expected<Hit, LayerMiss> find_in_folder(const Key& key);
  std::expected<Hit, LayerMiss> find_in_archive(const ArchiveReader& archive, const Key& key);
  LayerMiss miss(const ReadFailure& failure, const std::string& path);

  IoInterface* io_;
  Layer layer_;
  std::size_t index_;
  std::atomic<Form> form_{Form::unknown};
  std::atomic<bool> told_{false};  // that the layer as a whole cannot be used
  std::mutex mutex_;               // of what follows
  std::shared_ptr<const ArchiveReader> archive_;
  std::optional<LayerMiss> unusable_;  // an archive that will not become better by trying again
};

}  // namespace wavejit::cache
