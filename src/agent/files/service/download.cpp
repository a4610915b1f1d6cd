#include "agent/files/service/download.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "util/text.hpp"

namespace dockbridge::agent {

namespace {

/// A file up to this size is read when it is opened. Pseudo files are small, and the kernel reports a wrong size for
/// them.
constexpr std::uint64_t k_small_bytes = 1024ULL * 1024;
constexpr std::size_t k_max_pseudo_bytes = 16ULL * 1024 * 1024;
constexpr std::size_t k_chunk_bytes = 256UL * 1024;
/// Bytes of a hole that are hashed between two checks of the deadline; takes a few milliseconds.
constexpr std::uint64_t k_hole_chunk_bytes = 64ULL * 1024 * 1024;
constexpr milliseconds k_work_time{1000};

Error changed(const std::string& path) {
  return {ErrorCode::file_changed, fmt::format("File was written to during the copy: {}", printable_line(path, 300)),
          "Copy it again when nothing writes to it"};
}

void feed_zeros(RevisionHash& hash, std::uint64_t count) {
  static const std::string k_zeros(k_chunk_bytes, '\0');
  while (count > 0) {
    const std::size_t part = std::min<std::uint64_t>(count, k_zeros.size());
    hash.feed(std::string_view(k_zeros).substr(0, part));
    count -= part;
  }
}

}  // namespace

Result<std::unique_ptr<Download>> Download::open(const ResolvedFile& file) {
  auto fd = file.open_for_reading();
  if (!fd) {
    return fail(fd.error());
  }
  std::unique_ptr<Download> download(new Download);
  download->m_path = file.path;
  download->m_size = static_cast<std::uint64_t>(file.info.st_size);
  download->m_file = std::move(*fd);
  if (download->m_size > k_small_bytes) {
    return download;
  }
  const int number = download->m_file.get();
  auto bytes = read_at(number, 0, k_small_bytes + 1, file.path);
  if (bytes && bytes->size() > k_small_bytes && file.info.st_size == 0) {
    bytes = read_at(number, 0, k_max_pseudo_bytes + 1, file.path);
  }
  if (!bytes) {
    return fail(bytes.error());
  }
  if (bytes->size() > k_max_pseudo_bytes) {
    return fail(ErrorCode::too_large, fmt::format("Pseudo file exceeds 16 MiB: {}", printable_line(file.path, 300)),
                "Copy it to a file with a command first");
  }
  struct stat now {};
  if (::fstat(number, &now) != 0) {
    return fail(file_error(file.path, errno));
  }
  download->m_is_pseudo = now.st_size == 0 && !bytes->empty();
  if (download->m_size > 0 && bytes->size() > download->m_size) {
    bytes->resize(download->m_size);  // the rest was appended just now
  }
  download->m_size = bytes->size();
  download->m_whole = std::move(*bytes);
  return download;
}

Result<bool> Download::skip_hole(Pass& pass, Deadline deadline) const {
  const off_t found = ::lseek(m_file.get(), static_cast<off_t>(pass.at), SEEK_DATA);
  std::uint64_t data = static_cast<std::uint64_t>(found);
  if (found < 0) {
    // ENXIO means no data from here on. Any other error means a file system without holes: all of it is data.
    data = errno == ENXIO ? m_size : pass.at;
    struct stat info {};
    if (::fstat(m_file.get(), &info) != 0 || static_cast<std::uint64_t>(info.st_size) < m_size) {
      return fail(changed(m_path));
    }
  }
  const std::uint64_t end = std::min(data, m_size);
  while (pass.at < end && !deadline.passed()) {
    const std::uint64_t part = std::min(end - pass.at, k_hole_chunk_bytes);
    feed_zeros(pass.hash, part);
    pass.at += part;
  }
  return pass.at >= end;
}

Result<std::string> Download::read(Pass& pass, std::size_t most) const {
  std::uint64_t end = std::min(m_size, pass.at + most);
  const off_t hole = ::lseek(m_file.get(), static_cast<off_t>(pass.at), SEEK_HOLE);
  if (hole > static_cast<off_t>(pass.at)) {
    end = std::min(end, static_cast<std::uint64_t>(hole));
  }
  auto bytes = read_at(m_file.get(), pass.at, static_cast<std::size_t>(end - pass.at), m_path);
  if (bytes && bytes->size() < end - pass.at) {
    return fail(changed(m_path));
  }
  if (bytes) {
    pass.hash.feed(*bytes);
    pass.at = end;
  }
  return bytes;
}

Result<Download::Piece> Download::next(std::size_t most) {
  const auto deadline = Deadline::after(k_work_time);
  Piece piece;
  if (m_whole) {
    piece.offset = m_sent.at;
    piece.bytes = m_whole->substr(m_sent.at, most);
    m_sent.hash.feed(piece.bytes);
    m_sent.at += piece.bytes.size();
  } else {
    const auto is_at_data = skip_hole(m_sent, deadline);
    piece.offset = m_sent.at;
    auto bytes = !is_at_data                         ? fail(is_at_data.error())
                 : *is_at_data && m_sent.at < m_size ? read(m_sent, most)
                                                     : Result<std::string>();
    if (!bytes) {
      return fail(bytes.error());
    }
    piece.bytes = std::move(*bytes);
  }
  if (m_sent.at == m_size) {
    if (auto checked = check(deadline); !checked) {
      return fail(checked.error());
    }
    piece.complete = m_checked.at == m_size;
  }
  piece.checked = m_checked.at;
  return piece;
}

Result<void> Download::check(Deadline deadline) {
  if (m_whole) {
    const Result<std::string> bytes =
        m_is_pseudo ? *m_whole : read_at(m_file.get(), 0, static_cast<std::size_t>(m_size), m_path);
    m_checked.at = m_size;
    return !bytes ? fail(bytes.error()) : *bytes != *m_whole ? fail(changed(m_path)) : Result<void>();
  }
  while (m_checked.at < m_size && !deadline.passed()) {
    const auto is_at_data = skip_hole(m_checked, deadline);
    const auto bytes = !is_at_data                            ? fail(is_at_data.error())
                       : *is_at_data && m_checked.at < m_size ? read(m_checked, k_chunk_bytes)
                                                              : Result<std::string>();
    if (!bytes) {
      return fail(bytes.error());
    }
  }
  return m_checked.at == m_size && m_checked.hash.revision() != m_sent.hash.revision() ? fail(changed(m_path))
                                                                                       : Result<void>();
}

}  // namespace dockbridge::agent
