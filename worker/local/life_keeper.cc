#include "worker/local/life_keeper.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "common/file_lock.h"
#include "common/random.h"
#include "common/text.h"

namespace berth::worker {
namespace {

constexpr size_t kHexDigits = 32;
constexpr std::string_view kSuffix = ".life";

bool is_client_file(const std::string& worker_name, const std::string& file) {
  const std::string prefix = worker_name + ".";
  if (file.size() != prefix.size() + kHexDigits + kSuffix.size()) return false;
  if (file.compare(0, prefix.size(), prefix) != 0) return false;
  const auto first = file.begin() + static_cast<std::ptrdiff_t>(prefix.size());
  return std::all_of(first, first + kHexDigits,
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }) &&
         file.compare(prefix.size() + kHexDigits, kSuffix.size(), kSuffix) == 0;
}

}  // namespace

Result<std::unique_ptr<LifeKeeper>> LifeKeeper::open(const std::string& directory,
                                                     const std::string& worker_name) {
  Result<UniqueFd> opened = open_directory(directory);
  if (!opened) return tl::unexpected(opened.error());
  return std::unique_ptr<LifeKeeper>(new LifeKeeper(std::move(*opened), worker_name));
}

Result<std::string> LifeKeeper::create() {
  const std::string name = worker_name_ + "." + to_hex(random_id128()) + std::string(kSuffix);
  Result<std::optional<LifeLock>> lock = LifeLock::take(directory_.get(), name);
  if (!lock) return tl::unexpected(lock.error());
  if (!*lock) return refuse(Reason::kInternal, "a fresh life file is held by somebody: " + name);
  const std::lock_guard guard(mutex_);
  held_.emplace(name, std::move(**lock));
  return name;
}

std::optional<LifeLock> LifeKeeper::take(const std::string& name) {
  const std::lock_guard guard(mutex_);
  auto found = held_.extract(name);
  if (found.empty()) return std::nullopt;
  return std::move(found.mapped());
}

void LifeKeeper::discard(const std::string& name) {
  if (std::optional<LifeLock> lock = take(name)) lock->remove(directory_.get());
}

Result<Life> LifeKeeper::test(const std::string& name) const {
  return test_life(directory_.get(), name, ProvenDead::kRemoveFile);
}

size_t LifeKeeper::remove_leftovers(const std::string& directory) const {
  std::error_code failed;
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(directory, failed)) {
    const std::string name = file.path().filename().string();
    if (is_client_file(worker_name_, name)) names.push_back(name);
  }
  size_t removed = 0;
  for (const std::string& name : names) {
    const Result<Life> life = test(name);
    if (life && *life == Life::kDead) ++removed;
  }
  return removed;
}

}  // namespace berth::worker
