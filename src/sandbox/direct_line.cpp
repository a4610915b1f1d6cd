#include "sandbox/direct_line.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>

#include "util/encoding.hpp"
#include "util/file.hpp"
#include "util/path_walk.hpp"
#include "util/random.hpp"
#include "util/socket_address.hpp"

namespace dockbridge::sandbox {

namespace {

constexpr std::size_t k_key_length = 32;
constexpr int k_max_waiting = 8;
constexpr mode_t k_for_everyone = 0666;
#ifdef SO_PASSRIGHTS
constexpr int k_pass_rights = SO_PASSRIGHTS;
#else
constexpr int k_pass_rights = 83;  // headers older than Linux 6.16
#endif

/// A socket that receives no descriptors, nor do the sockets accepted from it. Closing a descriptor that a process of
/// the container has sent could block for as long as that process wants.
Fd new_socket() {
  Fd made(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int no = 0;
  return made && ::setsockopt(made.get(), SOL_SOCKET, k_pass_rights, &no, sizeof no) == 0 ? std::move(made) : Fd();
}

/// Whether this process is the one that listens at the file. No other process can be while the listener is open.
bool is_own(const Fd& file) {
  const Fd visitor = new_socket();
  const sockaddr_un address = socket_address(file.get());
  ucred who{};
  socklen_t size = sizeof who;
  return visitor && ::connect(visitor.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
         ::getsockopt(visitor.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.pid == ::getpid();
}

class SocketStream : public ByteStream {
 public:
  SocketStream(Fd socket, std::unique_ptr<ByteStream> by_engine)
      : m_socket(std::move(socket)), m_by_engine(std::move(by_engine)) {}

  [[nodiscard]] int read_fd() const override { return m_socket.get(); }
  [[nodiscard]] int write_fd() const override { return m_socket.get(); }
  [[nodiscard]] std::string stderr_text() override { return m_by_engine->stderr_text(); }

  Result<std::size_t> read(std::span<char> buffer) override {
    const ssize_t got = ::recv(m_socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    return got == 0 ? fail(ErrorCode::stream_ended, "The stream ended") : moved(got);
  }
  Result<std::size_t> write(std::string_view bytes) override {
    return moved(::send(m_socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
  }

 private:
  static Result<std::size_t> moved(ssize_t count) {
    if (count >= 0) {
      return static_cast<std::size_t>(count);
    }
    return errno == EAGAIN || errno == EINTR ? Result<std::size_t>(0)
                                             : fail(ErrorCode::stream_ended, errno_error("The stream broke").message);
  }

  Fd m_socket;
  std::unique_ptr<ByteStream> m_by_engine;
};

}  // namespace

Result<DirectLine> DirectLine::offer(const SharedDirectory& directory) {
  const auto failed = [&] { return fail(errno_error("Cannot create a socket in " + directory.host_path)); };
  DirectLine line;
  auto walk = PathWalk::to(directory.host_path);
  if (!walk || !walk->is_directory()) {
    return walk ? fail(ErrorCode::io_error, directory.host_path + ": Not a directory") : fail(walk.error());
  }
  if (const auto link = walk->link_inside(directory.writable_mounts)) {
    return fail(ErrorCode::io_error, "The container can change a symbolic link to the shared directory: " + *link);
  }
  line.m_directory = walk->take_fd();
  line.m_listener = new_socket();
  if (!line.m_listener) {
    return fail(errno_error("Cannot refuse descriptors on a socket (needs Linux 6.16)"));
  }
  line.m_name = fmt::format(".dockbridge-{}.sock", ::getpid());
  line.m_path_in_container = directory.container_path + "/" + line.m_name;
  line.m_key = random_token(k_key_length);
  ::unlinkat(line.m_directory.get(), line.m_name.c_str(), 0);  // left by a server that was killed
  const sockaddr_un address = socket_address(line.m_directory.get(), line.m_name);
  if (::bind(line.m_listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(line.m_listener.get(), k_max_waiting) != 0) {
    return failed();
  }
  // From here on not by name: another user of the directory may have replaced the file.
  const Fd file(::openat(line.m_directory.get(), line.m_name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0) {
    return failed();
  }
  if (!is_own(file)) {
    return fail(ErrorCode::io_error, "The socket was replaced in " + directory.host_path);
  }
  if (::chmod(fmt::format("/proc/self/fd/{}", file.get()).c_str(), k_for_everyone) != 0) {
    return failed();
  }
  line.m_device = info.st_dev;
  line.m_inode = info.st_ino;
  return line;
}

DirectLine::~DirectLine() {
  if (m_directory) {
    ::unlinkat(m_directory.get(), m_name.c_str(), 0);
  }
}

wire::LineRequest DirectLine::invitation() const {
  return {m_path_in_container, m_device, m_inode, m_key};
}

Result<std::unique_ptr<ByteStream>> DirectLine::accept(std::unique_ptr<ByteStream> by_engine) const {
  // The session has connected already. At most a full backlog of other peers precedes it.
  for (int others = 0; others <= k_max_waiting; ++others) {
    Fd visitor(::accept4(m_listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!visitor && errno != EAGAIN) {
      return fail(errno_error("Cannot accept the agent's connection"));
    }
    if (!visitor) {
      break;
    }
    std::string said(k_key_length, '\0');
    const ssize_t got = ::recv(visitor.get(), said.data(), said.size(), 0);
    said.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    if (equal_in_constant_time(said, m_key)) {
      return std::make_unique<SocketStream>(std::move(visitor), std::move(by_engine));
    }
  }
  return fail(ErrorCode::protocol_violation, "The agent did not connect to the socket");
}

}  // namespace dockbridge::sandbox
