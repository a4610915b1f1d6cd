#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "docker/engine.hpp"

namespace dockbridge::test {

using nlohmann::json;

/// An engine with at most one container, and a log of the requests to it.
class FakeEngine : public docker::Engine {
 public:
  static constexpr std::size_t k_piece_bytes = 1000;

  [[nodiscard]] std::string description() const override { return "fake"; }
  Result<std::string> version(Deadline) override { return "1"; }

  Result<json> inspect(const std::string& container, Deadline) override {
    asked.push_back("inspect " + container);
    before_inspect();
    if (engine_error) {
      return fail(*engine_error);
    }
    if (!description_of_container) {
      return fail(ErrorCode::no_such_container, "no such container");
    }
    return *description_of_container;
  }
  Result<bool> has_image(const std::string& name, Deadline) override {
    asked.push_back("has_image " + name);
    return image_exists;
  }
  Result<void> create(const docker::ContainerSpec& spec, Deadline) override {
    asked.push_back("create " + spec.name);
    created = spec;
    if (!create_error || is_created_by_another) {
      description_of_container = container("made", "", "created");
    }
    return create_error ? Result<void>(fail(*create_error)) : Result<void>();
  }
  Result<void> start(const std::string& container_id, Deadline) override {
    asked.push_back("start " + container_id);
    if (start_error) {
      return fail(*start_error);
    }
    (*description_of_container)["State"] = state("later", after_start);
    return {};
  }
  Result<void> put_archive(const std::string& container_id, const std::string& directory, const std::string& tar,
                           Deadline) override {
    asked.push_back("put_archive " + container_id + " " + directory);
    archive = tar;
    return {};
  }
  Result<bool> is_known_absent(const std::string&, const std::string& path, Deadline) override {
    asked.push_back("is_known_absent " + path);
    return !archives.contains(path) && !existing.contains(path);
  }
  Result<void> get_archive(const std::string&, const std::string& path,
                           const std::function<bool(std::string_view)>& receive, Deadline) override {
    asked.push_back("get_archive " + path);
    const auto found = archives.find(path);
    if (found == archives.end()) {
      return fail(ErrorCode::no_such_file, "no such file");
    }
    for (std::size_t at = 0; at < found->second.size(); at += k_piece_bytes) {
      if (!receive(std::string_view(found->second).substr(at, k_piece_bytes))) {
        break;
      }
      sent += k_piece_bytes;
    }
    return {};
  }
  Result<std::unique_ptr<sandbox::ByteStream>> exec(const std::string& container_id,
                                                    const std::vector<std::string>& argv, Deadline) override {
    asked.push_back("exec " + container_id + " " + argv.at(0));
    return fail(ErrorCode::exec_failed, "no");
  }

  static json state(const std::string& started_at, const std::string& status) {
    return {{"Status", status},
            {"Running", status == "running" || status == "paused"},
            {"Paused", status == "paused"},
            {"StartedAt", started_at}};
  }
  static json container(const std::string& id, const std::string& started_at, const std::string& status) {
    return {{"Id", id}, {"State", state(started_at, status)}};
  }
  [[nodiscard]] bool was_asked(const std::string& what) const {
    return std::find(asked.begin(), asked.end(), what) != asked.end();
  }

  std::optional<json> description_of_container;
  bool image_exists = true;
  std::string after_start = "running";
  std::optional<Error> engine_error;
  std::optional<Error> create_error;
  bool is_created_by_another = false;  ///< another server creates the container while `create` fails
  std::optional<Error> start_error;
  std::optional<docker::ContainerSpec> created;
  std::function<void()> before_inspect = [] {};
  std::string archive;                          ///< the archive that was put into the container
  std::map<std::string, std::string> archives;  ///< archives that the engine sends, by path
  std::set<std::string> existing;               ///< other paths that exist
  std::size_t sent = 0;                         ///< bytes of archives sent
  std::vector<std::string> asked;
};

}  // namespace dockbridge::test
