#include "util/worker_pool.hpp"

#include <system_error>
#include <thread>
#include <utility>

namespace dockbridge {

namespace {
constexpr seconds k_idle_lifetime{10};
}

WorkerPool::~WorkerPool() {
  MutexLock lock(m_mutex);
  m_stopping = true;
  m_wanted.notify_all();
  m_rested.wait(lock, [&]() REQUIRES(m_mutex) { return m_threads == 0; });
}

bool WorkerPool::submit(std::function<void()> job) {
  MutexLock lock(m_mutex);
  if (m_idle <= m_jobs.size()) {
    if (m_threads == m_max_threads) {
      return false;
    }
    try {
      std::thread([this] { work(); }).detach();  // counted in m_threads; the destructor waits for it
    } catch (const std::system_error&) {
      return false;
    }
    ++m_threads;
    ++m_idle;
  }
  m_jobs.push_back(std::move(job));
  // Notify without the lock, which the woken thread needs. Only the submitting thread destroys the pool.
  lock.unlock();
  m_wanted.notify_one();
  return true;
}

bool WorkerPool::wait_until_idle(Deadline deadline) {
  MutexLock lock(m_mutex);
  return m_rested.wait_until(lock, deadline.time(),
                             [&]() REQUIRES(m_mutex) { return m_jobs.empty() && m_idle == m_threads; });
}

void WorkerPool::work() {
  MutexLock lock(m_mutex);
  while (true) {
    m_wanted.wait_for(lock, k_idle_lifetime, [&]() REQUIRES(m_mutex) { return !m_jobs.empty() || m_stopping; });
    if (m_jobs.empty()) {
      break;
    }
    auto job = std::move(m_jobs.front());
    m_jobs.pop_front();
    --m_idle;
    lock.unlock();
    job();
    job = nullptr;
    lock.lock();
    ++m_idle;
    m_rested.notify_all();
  }
  --m_idle;
  --m_threads;
  m_rested.notify_all();  // under the lock: the pool may be destroyed as soon as it is released
}

}  // namespace dockbridge
