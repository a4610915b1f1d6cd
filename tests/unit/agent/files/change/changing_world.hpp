#pragma once

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "agent/files/change/file_changer.hpp"
#include "agent/files/revision.hpp"
#include "support/temporary_directory.hpp"

namespace dockbridge::test {

using agent::ChangeAnswer;
using agent::Encoding;
using agent::FileChanger;
using agent::FileSpace;
using agent::NewContent;
using agent::revision_of;
using agent::TextEdit;
namespace fs = std::filesystem;

inline constexpr const char* k_owner = "ann";

inline NewContent text(std::string_view bytes, std::optional<mode_t> mode = {}, std::optional<Encoding> encoding = {}) {
  return {bytes, true, encoding, mode};
}

inline NewContent binary(std::string_view bytes) {
  return {bytes, false, std::nullopt, std::nullopt};
}

/// Files, and a FileChanger that changes them for `owner`.
class ChangingWorld {
 public:
  void put(const std::string& name, const std::string& content) const {
    std::ofstream(m_work / name, std::ios::binary) << content;
  }
  [[nodiscard]] std::string content(const std::string& name) const {
    std::ifstream file(m_work / name, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  [[nodiscard]] std::string at(const std::string& name) const { return (m_work / name).string(); }
  [[nodiscard]] const fs::path& work() const { return m_work.path(); }
  [[nodiscard]] const fs::path& state() const { return m_state.path(); }

  void read(const std::string& name, std::uint64_t lines = agent::SeenContent::k_all_lines) {
    const auto file = m_space->find(at(name));
    REQUIRE(file);
    auto read = agent::read_content(*file, {});
    REQUIRE(read);
    m_changer->note_seen(owner, file->path, {read->revision, lines}, std::move(read->whole));
  }
  Result<ChangeAnswer> write(const std::string& name, const NewContent& content) {
    return m_changer->write(*m_space, {at(name), owner, expected}, content);
  }
  Result<ChangeAnswer> write(const std::string& name, const std::string& content) { return write(name, text(content)); }
  Result<ChangeAnswer> edit(const std::string& name, const std::vector<TextEdit>& edits) {
    return m_changer->edit(*m_space, {at(name), owner, expected}, edits);
  }
  Result<ChangeAnswer> undo(const std::string& name, const std::optional<std::string>& change = std::nullopt) {
    return m_changer->undo(*m_space, {at(name), owner, std::nullopt}, change);
  }
  Result<ChangeAnswer> write_in_pieces(const std::string& name, const std::vector<std::string>& pieces) {
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (auto staged = m_changer->stage(*m_space, at(name), pieces[i], i == 0); !staged) {
        return fail(staged.error());
      }
    }
    return m_changer->write_staged(*m_space, {at(name), owner, expected}, {});
  }
  FileChanger& changer() { return *m_changer; }
  const FileSpace& space() { return *m_space; }
  /// Replaces the FileChanger, like the next server does.
  void restart(bool may_prepare = false) {
    m_changer.emplace(std::move(*FileChanger::open(m_state.fd(), may_prepare)));
  }
  /// Whether no temporary file is left.
  [[nodiscard]] bool is_tidy() const {
    return std::none_of(fs::recursive_directory_iterator(m_work.path()), fs::recursive_directory_iterator(),
                        [](const auto& entry) { return entry.path().filename().string().starts_with(".dockbridge-"); });
  }

  std::string owner = k_owner;
  std::optional<std::string> expected;

 private:
  TemporaryDirectory m_state;
  TemporaryDirectory m_work;
  Result<FileSpace> m_space = FileSpace::open("");
  std::optional<FileChanger> m_changer = std::move(*FileChanger::open(m_state.fd(), false));
};

template <typename Value>
std::string code_of(const Result<Value>& result) {
  return result ? "" : std::string(name_of(result.error().code));
}

inline bool says(const Error& error, const std::string& part) {
  return error.sentence().find(part) != std::string::npos;
}

inline bool notes(const Result<ChangeAnswer>& answer, const std::string& part) {
  return std::any_of(answer->notes.begin(), answer->notes.end(),
                     [&](const std::string& note) { return note.find(part) != std::string::npos; });
}

inline struct stat status_of(const std::string& path) {
  struct stat info {};
  REQUIRE(::lstat(path.c_str(), &info) == 0);
  return info;
}

}  // namespace dockbridge::test
