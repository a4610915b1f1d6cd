#include "agent/control/assignment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "util/file.hpp"

namespace dockbridge::agent {

namespace {

/// A longer content is passed as a file, so that the keeper needs no large buffer.
constexpr std::size_t k_max_inline_bytes = 4 * 1024;
/// Exceeds what the kernel accepts as arguments and environment of a program.
constexpr std::size_t k_max_content_bytes = 64 * 1024 * 1024;

class Writer {
 public:
  void number(std::uint64_t value) { m_bytes.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void text(std::string_view value) {
    number(value.size());
    m_bytes.append(value);
  }
  void texts(const std::vector<std::string>& values) {
    number(values.size());
    for (const std::string& value : values) {
      text(value);
    }
  }
  std::string take() { return std::move(m_bytes); }

 private:
  std::string m_bytes;
};

/// Reads what a Writer wrote. After the first missing value, all others read as empty and `is_complete` is false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : m_left(bytes) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    const std::string_view bytes = take(sizeof value);
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  std::string text() { return std::string(take(number())); }
  std::vector<std::string> texts() {
    std::vector<std::string> values;
    for (std::uint64_t count = number(); count > 0 && m_is_complete; --count) {
      values.push_back(text());
    }
    return values;
  }
  [[nodiscard]] bool is_complete() const { return m_is_complete; }

 private:
  std::string_view take(std::uint64_t size) {
    m_is_complete = m_is_complete && size <= m_left.size();
    const std::string_view taken = m_left.substr(0, m_is_complete ? size : 0);
    m_left.remove_prefix(taken.size());
    return taken;
  }

  std::string_view m_left;
  bool m_is_complete = true;
};

std::string encode(const Assignment& assignment) {
  Writer to;
  to.text(assignment.process);
  const ChildSpec& child = assignment.child;
  to.texts(child.argv);
  to.texts(child.environment);
  to.text(child.cwd);
  to.number(child.identity ? 1 : 0);
  if (child.identity) {
    to.number(child.identity->uid);
    to.number(child.identity->gid);
    to.number(child.identity->groups.size());
    for (const gid_t group : child.identity->groups) {
      to.number(group);
    }
  }
  to.number(static_cast<std::uint64_t>(assignment.max_runtime.count()));
  to.number(assignment.output_limit);
  to.number(static_cast<std::uint64_t>(child.nice));
  to.number(child.dies_with_keeper ? 1 : 0);
  to.number(assignment.caps.head);
  to.number(assignment.caps.tail);
  const wire::TerminalSize size = assignment.terminal.value_or(wire::TerminalSize{});
  to.number(size.columns);
  to.number(size.rows);
  to.number(assignment.has_side_channel ? 1 : 0);
  to.number(static_cast<std::uint64_t>(assignment.idle_limit.count()));
  to.text(assignment.greeting);
  to.number(assignment.watch_input ? 1 : 0);
  return to.take();
}

Result<Assignment> decode_assignment(std::string_view bytes) {
  Reader from(bytes);
  Assignment assignment;
  assignment.process = from.text();
  ChildSpec& child = assignment.child;
  child.argv = from.texts();
  child.environment = from.texts();
  child.cwd = from.text();
  if (from.number() != 0) {
    Identity& identity = child.identity.emplace();
    identity.uid = static_cast<uid_t>(from.number());
    identity.gid = static_cast<gid_t>(from.number());
    for (std::uint64_t count = from.number(); count > 0 && from.is_complete(); --count) {
      identity.groups.push_back(static_cast<gid_t>(from.number()));
    }
  }
  assignment.max_runtime = milliseconds(from.number());
  assignment.output_limit = from.number();
  child.nice = static_cast<int>(from.number());
  child.dies_with_keeper = from.number() != 0;
  assignment.caps.head = from.number();
  assignment.caps.tail = from.number();
  const auto columns = static_cast<std::uint16_t>(from.number());
  const auto rows = static_cast<std::uint16_t>(from.number());
  if (columns > 0 && rows > 0) {
    assignment.terminal = wire::TerminalSize{columns, rows};
  }
  assignment.has_side_channel = from.number() != 0;
  assignment.idle_limit = milliseconds(from.number());
  assignment.greeting = from.text();
  assignment.watch_input = from.number() != 0;
  if (!from.is_complete() || child.argv.empty()) {
    return fail(ErrorCode::cannot_start, "The keeper received a malformed command");
  }
  return assignment;
}

/// Descriptors that are passed with a packet, in this order. A set bit in the header's value means that the descriptor
/// with this number is present. k_content is an unnamed file with a content that is too long for a packet.
enum Passed : std::size_t { k_journal, k_stdin_file, k_content, k_max_passed };

struct Packet {
  ControlHeader header{};
  std::string payload;
  std::array<Fd, k_max_passed> descriptors;
};

Received receive_packet(int socket, Packet& packet) {
  packet.payload.resize(k_max_inline_bytes);
  std::array<iovec, 2> parts = {iovec{&packet.header, sizeof packet.header},
                                iovec{packet.payload.data(), packet.payload.size()}};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * k_max_passed)> control{};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got < 0 && errno == ECONNRESET) {
    got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);  // as in receive_control
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
    return Received::nothing;
  }
  if (got < static_cast<ssize_t>(sizeof packet.header)) {
    return Received::hangup;
  }
  packet.payload.resize(static_cast<std::size_t>(got) - sizeof packet.header);
  const cmsghdr* rights = CMSG_FIRSTHDR(&message);
  if (rights == nullptr || rights->cmsg_type != SCM_RIGHTS) {
    return Received::packet;
  }
  const unsigned char* next = CMSG_DATA(rights);
  const unsigned char* end = next + rights->cmsg_len - CMSG_LEN(0);
  for (std::size_t i = 0; i < k_max_passed; ++i) {
    if ((packet.header.value & (1U << i)) != 0 && next < end) {
      int number = -1;
      std::memcpy(&number, next, sizeof number);
      packet.descriptors.at(i).reset(number);
      next += sizeof number;
    }
  }
  return Received::packet;
}

Result<Assignment> read_assignment(Packet packet) {
  for (std::size_t i = 0; i < k_max_passed; ++i) {
    if ((packet.header.value & (1U << i)) != 0 && !packet.descriptors.at(i)) {
      return fail(ErrorCode::cannot_start, "The container has no file descriptors left for a process");
    }
  }
  if (const Fd& file = packet.descriptors[k_content]; file) {
    auto content = read_file_at(AT_FDCWD, fmt::format("/proc/self/fd/{}", file.get()), k_max_content_bytes);
    if (!content) {
      return fail(content.error().within("The keeper cannot read its command"));
    }
    packet.payload = std::move(*content);
  }
  auto assignment = decode_assignment(packet.payload);
  if (assignment) {
    assignment->journal = std::move(packet.descriptors[k_journal]);
    assignment->stdin_file = std::move(packet.descriptors[k_stdin_file]);
  }
  return assignment;
}

}  // namespace

Result<void> send_assignment(int socket, const Assignment& assignment) {
  const std::string content = encode(assignment);
  Fd file;
  if (content.size() > k_max_inline_bytes) {
    file.reset(::memfd_create("assignment", MFD_CLOEXEC));
    const auto written = file ? write_all(file.get(), content) : fail(errno_error("memfd_create"));
    if (!written) {
      return fail(written.error().within("Cannot send to a keeper"));
    }
  }
  ControlHeader header{k_control_version, static_cast<std::uint8_t>(Order::start), 0, 0};
  std::array<int, k_max_passed> descriptors{};
  std::size_t count = 0;
  const std::array<const Fd*, k_max_passed> passed = {&assignment.journal, &assignment.stdin_file, &file};
  for (std::size_t i = 0; i < passed.size(); ++i) {
    if (*passed.at(i)) {
      header.value |= 1U << i;
      descriptors.at(count++) = passed.at(i)->get();
    }
  }
  std::array<iovec, 2> parts = {iovec{&header, sizeof header},
                                iovec{const_cast<char*>(content.data()), file ? 0 : content.size()}};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof descriptors)> control{};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(count * sizeof(int));
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(count * sizeof(int));
  std::memcpy(CMSG_DATA(rights), descriptors.data(), count * sizeof(int));
  if (::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
    return fail(ErrorCode::keeper_gone, "The keeper is gone");
  }
  return {};
}

Received receive_assignment(int socket, Result<Assignment>& assignment) {
  Packet packet;
  const Received received = receive_packet(socket, packet);
  if (received != Received::packet) {
    return received;
  }
  if (packet.header.type != static_cast<std::uint8_t>(Order::start)) {
    return Received::nothing;
  }
  assignment = read_assignment(std::move(packet));
  return Received::packet;
}

}  // namespace dockbridge::agent
