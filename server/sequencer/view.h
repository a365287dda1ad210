// Reading what is installed, from any thread. Readers hold the lock shared while they walk the
// directory; the one writer holds it exclusively only around Directory::install(), which is memory
// work bounded by the batch, so a reader never waits for a decision, the disk or another reader.
//
// One view at a time per thread: see view_mutex.h. Keep it short, and never across a wait.
#pragma once

#include <shared_mutex>

#include "server/directory/directory.h"
#include "server/sequencer/view_mutex.h"

namespace berth {

class DirectoryView {
 public:
  DirectoryView(const Directory& directory, ViewMutex& mutex)
      : lock_(mutex), directory_(directory) {}
  const Directory& operator*() const { return directory_; }
  const Directory* operator->() const { return &directory_; }

 private:
  std::shared_lock<ViewMutex> lock_;
  const Directory& directory_;
};

}  // namespace berth
