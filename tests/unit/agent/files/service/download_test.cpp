#include "agent/files/service/download.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "support/temporary_directory.hpp"

using namespace dockbridge;
using agent::Download;
using agent::FileSpace;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t k_piece = 1024 * 1024;

/// A file and a running copy of it.
struct Copy {
  test::TemporaryDirectory world;
  fs::path path = world / "file";
  std::unique_ptr<Download> download;
  std::string received;
  bool complete = false;

  explicit Copy(const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
    begin();
  }
  void begin() {
    const auto file = FileSpace::open("")->find(path.string());
    REQUIRE(file);
    auto opened = Download::open(*file);
    REQUIRE(opened);
    download = std::move(*opened);
    received.clear();
    complete = false;
  }
  /// Receives the next piece; returns the error's code, or "" on success.
  std::string step() {
    const auto piece = download->next(k_piece);
    if (!piece) {
      return std::string(name_of(piece.error().code));
    }
    received.resize(piece->offset);
    received += piece->bytes;
    complete = piece->complete;
    return "";
  }
  std::string finish() {
    std::string error;
    while (!complete && error.empty()) {
      error = step();
    }
    return error;
  }
};

std::string pattern(std::size_t size, char seed = 0) {
  std::string bytes(size, '\0');
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<char>((i * i >> 7U) + static_cast<unsigned char>(seed));
  }
  return bytes;
}

}  // namespace

TEST_CASE("download: returns every byte and the revision") {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, k_piece - 1, k_piece, k_piece + 1, 5 * k_piece + 7}) {
    CAPTURE(size);
    const std::string content = pattern(size);
    Copy copy(content);
    CHECK(copy.download->size() == size);
    CHECK(copy.finish().empty());
    CHECK(copy.received == content);
    CHECK(copy.download->revision() == agent::revision_of(content));
  }
}

TEST_CASE("download: a replaced file is still read from the opened one") {
  const std::string content = pattern(3 * k_piece);
  Copy copy(content);
  REQUIRE(copy.step().empty());
  std::ofstream(copy.world / "new", std::ios::binary) << pattern(3 * k_piece, 1);
  fs::rename(copy.world / "new", copy.path);
  CHECK(copy.finish().empty());
  CHECK(copy.received == content);
}

TEST_CASE("download: a write anywhere in the file during the copy is reported") {
  for (const std::size_t size : {std::size_t{1000}, 3 * k_piece}) {
    for (const std::size_t at : {std::size_t{0}, size - 1}) {
      CAPTURE(size);
      CAPTURE(at);
      Copy copy(pattern(size));
      if (size > k_piece) {
        REQUIRE(copy.step().empty());
      }
      std::fstream file(copy.path, std::ios::binary | std::ios::in | std::ios::out);
      file.seekp(static_cast<std::streamoff>(at));
      file.put('!').flush();
      const std::string error = copy.finish();
      // A byte that was written before it was read is part of the copy.
      if (size > k_piece && at == size - 1) {
        CHECK(error.empty());
        CHECK(copy.received.back() == '!');
      } else {
        CHECK(error == "file_changed");
      }
    }
  }
}

TEST_CASE("download: a write through a memory mapping is reported") {
  Copy copy(pattern(3 * k_piece));
  const Fd file(::open(copy.path.c_str(), O_RDWR | O_CLOEXEC));
  void* mapped = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  REQUIRE(mapped != MAP_FAILED);
  auto* bytes = static_cast<volatile char*>(mapped);
  bytes[0] = 'a';  // the page is dirty from here on, so later writes change no time stamp
  copy.begin();
  REQUIRE(copy.step().empty());
  bytes[0] = 'b';
  CHECK(copy.finish() == "file_changed");
  ::munmap(mapped, 4096);
}

TEST_CASE("download: a truncation or rewrite during the copy is reported") {
  for (const bool is_refilled : {false, true}) {
    for (const bool is_sparse : {false, true}) {
      CAPTURE(is_refilled);
      CAPTURE(is_sparse);
      Copy copy(pattern(3 * k_piece));
      if (is_sparse) {
        fs::resize_file(copy.path, 6 * k_piece);
        copy.begin();
      }
      const auto size = fs::file_size(copy.path);
      REQUIRE(copy.step().empty());
      fs::resize_file(copy.path, k_piece);
      if (is_refilled) {
        fs::resize_file(copy.path, 0);
        fs::resize_file(copy.path, size);
      }
      CHECK(copy.finish() == "file_changed");
    }
  }
}

TEST_CASE("download: bytes appended during the copy are not part of it") {
  for (const std::size_t size : {std::size_t{1000}, 3 * k_piece}) {
    CAPTURE(size);
    const std::string content = pattern(size);
    Copy copy(content);
    std::ofstream(copy.path, std::ios::binary | std::ios::app) << "more";
    CHECK(copy.finish().empty());
    CHECK(copy.received == content);
  }
}

TEST_CASE("download: holes are skipped, wherever they are") {
  Copy copy("");
  constexpr std::uint64_t k_size = 3'000'000'000;
  {
    const Fd file(::open(copy.path.c_str(), O_RDWR | O_CLOEXEC));
    REQUIRE(::ftruncate(file.get(), k_size) == 0);
    REQUIRE(::pwrite(file.get(), "data", 4, 1'500'000'000) == 4);
  }
  const auto file = FileSpace::open("")->find(copy.path.string());
  auto download = *Download::open(*file);
  CHECK(download->size() == k_size);
  std::uint64_t sent = 0;
  std::string around;
  for (bool complete = false; !complete;) {
    const auto piece = download->next(k_piece);
    REQUIRE(piece);
    sent += piece->bytes.size();
    if (piece->offset <= 1'500'000'000 && piece->offset + piece->bytes.size() >= 1'500'000'004) {
      around = piece->bytes.substr(1'500'000'000 - piece->offset, 4);
    }
    complete = piece->complete;
  }
  CHECK(around == "data");
  CHECK(sent < 1'000'000);
}

TEST_CASE("download: a pseudo file is returned as it was when opened") {
  for (const char* path : {"/proc/self/stat", "/proc/uptime", "/proc/cpuinfo"}) {
    CAPTURE(path);
    auto download = *Download::open(*FileSpace::open("")->find(path));
    CHECK(download->size() > 0);
    const auto piece = download->next(k_piece);
    REQUIRE(piece);
    CHECK(piece->complete);
    CHECK(piece->bytes.size() == download->size());
  }
}
