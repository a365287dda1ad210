// The life files of one worker's clients in the runtime directory: made and locked before anybody
// hears of them, held until their descriptor is passed, tested when a client may be dead.
//
// Names are "<worker>.<32 hex digits>.life". Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/error.h"
#include "common/life_lock.h"
#include "common/unique_fd.h"

namespace berth::worker {

class LifeKeeper {
 public:
  // Errors: kIoError naming the directory.
  static Result<std::unique_ptr<LifeKeeper>> open(const std::string& directory,
                                                  const std::string& worker_name);

  // Makes a life file and holds its lock; returns its name.
  Result<std::string> create();
  // Gives the lock away to be passed: from now on only who receives it keeps it. Once per name.
  std::optional<LifeLock> take(const std::string& name);
  // Nobody will receive it: the file goes, which proves as much as a free lock.
  void discard(const std::string& name);

  // Removes the file of a proven dead holder. Errors prove nothing.
  Result<Life> test(const std::string& name) const;
  // Client files of this worker whose holders are dead: what a killed predecessor left behind.
  size_t remove_leftovers(const std::string& directory) const;

  int directory() const { return directory_.get(); }

 private:
  LifeKeeper(UniqueFd directory, std::string worker_name)
      : directory_(std::move(directory)), worker_name_(std::move(worker_name)) {}

  const UniqueFd directory_;
  const std::string worker_name_;
  std::mutex mutex_;
  std::map<std::string, LifeLock> held_;  // guarded by mutex_
};

}  // namespace berth::worker
