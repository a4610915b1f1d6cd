#pragma once

#include <functional>
#include <optional>

#include "docker/engine.hpp"
#include "docker/http.hpp"
#include "util/mutex.hpp"

namespace dockbridge::docker {

/// The Docker Engine API. The engine is looked for at each request until it is found, and not before.
class ApiEngine : public Engine {
 public:
  using Finder = std::function<Result<Address>()>;
  explicit ApiEngine(Finder find) : m_find(std::move(find)) {}

  [[nodiscard]] std::string description() const override;
  Result<std::string> version(Deadline deadline) override;
  Result<nlohmann::json> inspect(const std::string& container, Deadline deadline) override;
  Result<bool> has_image(const std::string& image, Deadline deadline) override;
  Result<void> create(const ContainerSpec& spec, Deadline deadline) override;
  Result<void> start(const std::string& container, Deadline deadline) override;
  Result<void> put_archive(const std::string& container, const std::string& directory, const std::string& tar,
                           Deadline deadline) override;
  Result<bool> is_known_absent(const std::string& container, const std::string& path, Deadline deadline) override;
  Result<void> get_archive(const std::string& container, const std::string& path,
                           const std::function<bool(std::string_view bytes)>& receive, Deadline deadline) override;
  Result<std::unique_ptr<sandbox::ByteStream>> exec(const std::string& container, const std::vector<std::string>& argv,
                                                    Deadline deadline) override;

 private:
  Result<Http> http();
  Result<HttpResponse> get(const std::string& path, Deadline deadline);
  Result<HttpResponse> post(const std::string& path, const nlohmann::json& body, Deadline deadline);

  Finder m_find;
  mutable Mutex m_mutex;
  std::optional<Address> m_address GUARDED_BY(m_mutex);
};

}  // namespace dockbridge::docker
