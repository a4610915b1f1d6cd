#pragma once

#include <memory>
#include <string>

#include "error/error.hpp"
#include "sandbox/channel.hpp"
#include "util/fd.hpp"
#include "wire/session_messages.hpp"

namespace dockbridge::sandbox {

/// A socket in a directory that host and container share, for the session to come to: what is said over it does not
/// have to pass through the engine, which costs as much as all the rest of a short call. It is in the directory only as
/// long as this lives. Others can see it there, on both sides; so the session is told, over the engine's stream, which
/// file it is and by which key it is known.
class DirectLine {
 public:
  static Result<DirectLine> offer(const SharedDirectory& directory);
  ~DirectLine();
  DirectLine(DirectLine&&) = default;
  DirectLine& operator=(DirectLine&&) = delete;

  /// The request that asks the session to come.
  [[nodiscard]] wire::LineRequest invitation() const;
  /// The stream to the session, once that has said that it came; whoever else did is turned away. Holds on to the one
  /// by which the engine runs it.
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
