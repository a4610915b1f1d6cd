#pragma once

#include <mutex>

// Annotations for clang's thread-safety analysis, which tests/lint/thread_safety.sh runs. They do not change the code.
#ifdef __clang__
#define THREAD_ANNOTATION(attribute) __attribute__((attribute))
#else
#define THREAD_ANNOTATION(attribute)
#endif
/// The member may be used only while this mutex is locked.
#define GUARDED_BY(mutex) THREAD_ANNOTATION(guarded_by(mutex))
/// The function may be called only while this mutex is locked. It is locked when the function returns, too.
#define REQUIRES(mutex) THREAD_ANNOTATION(requires_capability(mutex))

namespace dockbridge {

/// A std::mutex that the analysis knows.
class THREAD_ANNOTATION(capability("mutex")) Mutex : public std::mutex {
 public:
  void lock() THREAD_ANNOTATION(acquire_capability()) { std::mutex::lock(); }
  void unlock() THREAD_ANNOTATION(release_capability()) { std::mutex::unlock(); }
};

/// A std::unique_lock that the analysis knows. Condition variables accept it.
class THREAD_ANNOTATION(scoped_lockable) MutexLock : public std::unique_lock<std::mutex> {
 public:
  explicit MutexLock(Mutex& mutex) THREAD_ANNOTATION(acquire_capability(mutex)) : unique_lock(mutex) {}
  ~MutexLock() THREAD_ANNOTATION(release_capability()) {}  // NOLINT(modernize-use-equals-default): clang 14 rejects it
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() THREAD_ANNOTATION(acquire_capability()) { unique_lock::lock(); }
  void unlock() THREAD_ANNOTATION(release_capability()) { unique_lock::unlock(); }
};

}  // namespace dockbridge
