#include "wire/operation.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string_view>

using namespace dockbridge::wire;

TEST_CASE("operations: names are unique and identify the operation") {
  std::set<std::string_view> names;
  for (const OperationProperties& entry : operations()) {
    CAPTURE(entry.name);
    CHECK(names.insert(entry.name).second);
    CHECK(operation_named(entry.name) == entry.operation);
    CHECK(&properties_of(entry.operation) == &entry);
  }
  CHECK_FALSE(operation_named("file."));
  CHECK_FALSE(operation_named(""));
}

TEST_CASE("operations: of all file operations, the session serves only file.watch") {
  for (const OperationProperties& entry : operations()) {
    CAPTURE(entry.name);
    const bool is_session_file_operation = entry.operation == Operation::file_watch;
    CHECK((entry.served_by != ServedBy::session || is_session_file_operation) == entry.name.starts_with("file."));
  }
}

TEST_CASE("operations: a change to a file is neither repeatable nor cancellable") {
  for (const Operation change : {Operation::file_write, Operation::file_edit, Operation::file_edit_set,
                                 Operation::file_undo, Operation::file_stage}) {
    CHECK_FALSE(properties_of(change).repeatable);
    CHECK_FALSE(properties_of(change).cancellable);
  }
}
