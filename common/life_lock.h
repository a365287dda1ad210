// A life lock: proof of death by the kernel. Whoever holds it is alive; it can be taken only when
// every process that had its descriptor (inherited by fork, or received over SCM_RIGHTS) is gone.
//
//   worker:  take("w0.life")  keeps it as long as it lives. A second live worker of that name gets
//   none. client:  the worker takes "w0-c7.life", sends descriptor() to the client and drops its
//   own copy;
//            from then on test_life() says kAlive until the client and all its forks are dead.
//
// A held lock says nothing about the name afterwards: remove() unlinks it while the lock is still
// held, so that nobody can take a file that is about to vanish.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "common/error.h"
#include "common/unique_fd.h"

namespace berth {

class LifeLock {
 public:
  // Nothing when somebody alive holds it. Errors: see attempt_file_lock().
  static Result<std::optional<LifeLock>> take(int directory, const std::string& name);

  int descriptor() const { return file_.get(); }
  const std::string& name() const { return name_; }

  // Gives the descriptor, and with it the lock, away.
  UniqueFd release() { return std::move(file_); }

  // Unlinks the file and drops the lock. `directory` is where it was taken.
  void remove(int directory);

 private:
  LifeLock(UniqueFd file, std::string name) : file_(std::move(file)), name_(std::move(name)) {}

  UniqueFd file_;
  std::string name_;
};

enum class Life { kAlive, kDead };
enum class ProvenDead { kKeepFile, kRemoveFile };

// kDead: the lock could be taken, or the file is missing, which only happens after such a proof.
// With kRemoveFile the file of a proven dead holder is unlinked while we hold its lock.
// An Error proves nothing: the caller treats the holder as alive. The test holds the lock for a
// moment, so a name is tested only by whoever gives it out; a take() at that very moment would see
// it as busy.
Result<Life> test_life(int directory, const std::string& name, ProvenDead then);

}  // namespace berth
