#pragma once

#include <memory>
#include <string>

#include "error/error.hpp"
#include "sandbox/channel.hpp"
#include "util/fd.hpp"
#include "wire/session_messages.hpp"

namespace dockbridge::sandbox {

/// A socket in a directory that host and container share. The session connects to it, so that frames do not pass
/// through the engine, which takes half the time of a short call. The socket's file exists as long as this object.
/// Other processes on both sides can see the file. So the session receives its identity and a key over the engine's
/// stream.
class DirectLine {
 public:
  static Result<DirectLine> offer(const SharedDirectory& directory);
  ~DirectLine();
  DirectLine(DirectLine&&) = default;
  DirectLine& operator=(DirectLine&&) = delete;

  /// The request that asks the session to connect.
  [[nodiscard]] wire::LineRequest invitation() const;
  /// The stream to the session, after the session has reported that it connected. Other peers are rejected. The stream
  /// keeps `by_engine` open, because the engine runs the session by it.
  [[nodiscard]] Result<std::unique_ptr<ByteStream>> accept(std::unique_ptr<ByteStream> by_engine) const;

 private:
  DirectLine() = default;

  Fd m_directory;
  std::string m_name;
  std::string m_path_in_container;
  std::string m_key;
  Fd m_listener;
  std::uint64_t m_device = 0;
  std::uint64_t m_inode = 0;
};

}  // namespace dockbridge::sandbox
