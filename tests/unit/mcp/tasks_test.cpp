#include "mcp/tasks.hpp"

#include <doctest/doctest.h>

using namespace dockbridge;
using namespace dockbridge::mcp;

namespace {

struct TaskTable {
  std::shared_ptr<Task> create(const std::string& owner, Clock::time_point now,
                               std::optional<milliseconds> ttl = std::nullopt) {
    return tasks.create(owner, ttl, std::make_shared<Interruption>(), new_task_handle(), now);
  }
  bool has(const std::shared_ptr<Task>& task) const { return tasks.find(task->owner(), task->id()) != nullptr; }

  Bulletin bulletin;
  Tasks tasks{bulletin};
  const Clock::time_point start{};
};

}  // namespace

TEST_CASE("tasks: an ended task is dropped after its time to live, not before") {
  TaskTable table;
  const auto task = table.create("alice", table.start, seconds(60));
  task->complete("done", false);
  table.create("bob", table.start + seconds(60) - milliseconds(1));
  CHECK(table.has(task));
  table.create("bob", table.start + seconds(60));
  CHECK(!table.has(task));
}

TEST_CASE("tasks: a running task does not expire") {
  TaskTable table;
  const auto task = table.create("alice", table.start, seconds(60));
  table.create("alice", table.start + std::chrono::hours(48));
  CHECK(table.has(task));
}

TEST_CASE("tasks: a time to live is at least a second and at most a day") {
  TaskTable table;
  CHECK(table.create("alice", table.start, milliseconds(0))->state().ttl == seconds(1));
  CHECK(table.create("alice", table.start, std::chrono::hours(100))->state().ttl == std::chrono::hours(24));
  CHECK(table.create("alice", table.start)->state().ttl == k_default_task_ttl);
}

TEST_CASE("tasks: an owner at its limit loses its oldest ended task, then gets no more") {
  TaskTable table;
  std::vector<std::shared_ptr<Task>> all;
  for (std::size_t i = 0; i < k_max_tasks_per_owner; ++i) {
    all.push_back(table.create("alice", table.start));
  }
  CHECK(!table.create("alice", table.start));
  CHECK(table.create("bob", table.start));
  all[7]->fail({});
  all[9]->complete("done", false);
  CHECK(table.create("alice", table.start));
  CHECK(!table.has(all[7]));
  CHECK(table.has(all[9]));
}

TEST_CASE("tasks: a handle that is in use gets another task id") {
  TaskTable table;
  const std::string handle = new_task_handle();
  const auto first = table.tasks.create("alice", {}, std::make_shared<Interruption>(), handle, table.start);
  const auto second = table.tasks.create("alice", {}, std::make_shared<Interruption>(), handle, table.start);
  CHECK(first->id() == task_id_of(handle));
  CHECK(second->id() != first->id());
}
