// The lock between the one writer and everybody who reads the directory. Unlike std::shared_mutex
// here, it lets a waiting writer go before new readers: with probes overlapping all the time the
// writer would otherwise never get in. The price: a thread that holds it shared must not ask for it
// again, or it waits behind a writer that waits for it.
#pragma once

#include <pthread.h>

#include "common/check.h"

namespace berth {

// Meets the standard's SharedLockable, for std::shared_lock and std::unique_lock.
class ViewMutex {
 public:
  ViewMutex() {
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    BERTH_CHECK(pthread_rwlock_init(&lock_, &attributes) == 0, "a lock needs no resources");
    pthread_rwlockattr_destroy(&attributes);
  }
  ~ViewMutex() { pthread_rwlock_destroy(&lock_); }
  ViewMutex(const ViewMutex&) = delete;
  ViewMutex& operator=(const ViewMutex&) = delete;

  void lock() {
    BERTH_CHECK(pthread_rwlock_wrlock(&lock_) == 0, "a thread that reads cannot write");
  }
  void unlock() { pthread_rwlock_unlock(&lock_); }
  void lock_shared() { BERTH_CHECK(pthread_rwlock_rdlock(&lock_) == 0, "too many readers"); }
  void unlock_shared() { pthread_rwlock_unlock(&lock_); }

 private:
  pthread_rwlock_t lock_;
};

}  // namespace berth
