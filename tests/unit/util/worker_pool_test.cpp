#include "util/worker_pool.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <latch>
#include <memory>
#include <thread>
#include <utility>

using namespace dockbridge;

namespace {

constexpr seconds k_patience{20};

/// The value of a future that must be ready soon.
template <typename T>
T value_of(std::future<T>& future) {
  REQUIRE(future.wait_for(k_patience) == std::future_status::ready);
  return future.get();
}

}  // namespace

TEST_CASE("worker pool: eight jobs run concurrently") {
  WorkerPool pool(8);
  std::latch all(8);
  for (int i = 0; i < 8; ++i) {
    CHECK(pool.submit([&all] { all.arrive_and_wait(); }));
  }
  CHECK(pool.wait_until_idle(Deadline::after(k_patience)));
  CHECK(all.try_wait());
}

TEST_CASE("worker pool: a job beyond the limit is rejected and released") {
  WorkerPool pool(2);
  std::latch release(1);
  std::atomic<int> ran{0};
  for (int i = 0; i < 2; ++i) {
    CHECK(pool.submit([&] {
      release.wait();
      ++ran;
    }));
  }
  CHECK_FALSE(pool.submit([&] { ran += 100; }));
  CHECK_FALSE(pool.submit([&] { ran += 100; }));
  release.count_down();
  CHECK(pool.wait_until_idle(Deadline::after(k_patience)));
  CHECK(ran == 2);
}

TEST_CASE("worker pool: a finished job makes room for another") {
  WorkerPool pool(1);
  for (int i = 0; i < 100; ++i) {
    REQUIRE(pool.submit([] {}));
    REQUIRE(pool.wait_until_idle(Deadline::after(k_patience)));
  }
}

TEST_CASE("worker pool: an idle thread is reused before a new one is created") {
  WorkerPool pool(4);
  std::promise<std::thread::id> first;
  std::promise<std::thread::id> second;
  auto first_id = first.get_future();
  auto second_id = second.get_future();
  REQUIRE(pool.submit([&] { first.set_value(std::this_thread::get_id()); }));
  REQUIRE(pool.wait_until_idle(Deadline::after(k_patience)));
  REQUIRE(pool.submit([&] { second.set_value(std::this_thread::get_id()); }));
  REQUIRE(pool.wait_until_idle(Deadline::after(k_patience)));
  CHECK(value_of(first_id) == value_of(second_id));
}

TEST_CASE("worker pool: a job may submit another") {
  std::promise<bool> inner;
  auto ran = inner.get_future();
  WorkerPool pool(2);
  REQUIRE(pool.submit([&] { pool.submit([&] { inner.set_value(true); }); }));
  CHECK(value_of(ran));
}

TEST_CASE("worker pool: idle without jobs") {
  WorkerPool pool(1);
  CHECK(pool.wait_until_idle(Deadline::after(milliseconds(0))));
}

TEST_CASE("worker pool: waiting for a running job ends at the deadline") {
  WorkerPool pool(1);
  std::latch release(1);
  REQUIRE(pool.submit([&] { release.wait(); }));
  CHECK_FALSE(pool.wait_until_idle(Deadline::after(milliseconds(0))));
  release.count_down();
  CHECK(pool.wait_until_idle(Deadline::after(k_patience)));
}

TEST_CASE("worker pool: a job is destroyed before the pool is idle") {
  WorkerPool pool(1);
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = held;
  REQUIRE(pool.submit([held = std::move(held)] {}));
  REQUIRE(pool.wait_until_idle(Deadline::after(k_patience)));
  CHECK(watched.expired());
}

TEST_CASE("worker pool: the destructor waits for jobs") {
  std::atomic<int> done{0};
  std::latch started(3);
  std::latch release(1);
  std::thread releases([&] {
    started.wait();
    release.count_down();
  });
  {
    WorkerPool pool(3);
    for (int i = 0; i < 3; ++i) {
      REQUIRE(pool.submit([&] {
        started.count_down();
        release.wait();
        ++done;
      }));
    }
  }
  CHECK(done == 3);
  releases.join();
}

TEST_CASE("worker pool: no thread outlives its pool") {
  std::atomic<int> done{0};
  for (int i = 0; i < 300; ++i) {
    auto pool = std::make_unique<WorkerPool>(4);
    for (int job = 0; job < 4; ++job) {
      REQUIRE(pool->submit([&done] { ++done; }));
    }
  }
  CHECK(done == 300 * 4);
}
