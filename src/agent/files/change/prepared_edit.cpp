#include "agent/files/change/prepared_edit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "util/text.hpp"

namespace dockbridge::agent {

namespace {

/// The content as text, in UTF-8.
Result<std::string> text_of(const CurrentFile& current) {
  const FileContent& content = current.content;
  if (!content.whole) {
    return fail(
        ErrorCode::too_large,
        fmt::format("File is too large to edit: {}, {}", displayed_path(current.place.path), human_bytes(content.size)),
        "Change it with a command, for example sed -i");
  }
  if (!content.page) {
    return fail(ErrorCode::is_binary, "Not a text file: " + displayed_path(current.place.path));
  }
  return decode(*content.whole, content.page->encoding);
}

}  // namespace

Result<PreparedEdit> prepare_edit(const ChangeGuard& guard, const FileSpace& space, const wire::ChangeRequest& request,
                                  std::span<const TextEdit> edits, const EditSetMode& mode, LockedDirectories* locked) {
  auto current = find_current(space, request.path, Absent::is_an_error, locked);
  if (!current) {
    return fail(current.error());
  }
  auto expected = guard.expected_revision(request, *current, &mode);
  if (!expected && mode.is_replacement) {
    // A file without a match is not part of the replacement, whether it was read or not.
    const auto unseen = text_of(*current);
    const auto tried = unseen ? apply_edits(*unseen, edits) : fail(unseen.error());
    if (!tried) {
      return fail(tried.error());
    }
  }
  const bool is_unread = !expected && request.match_is_enough;
  const auto unread = is_unread ? expected.error() : Error{};
  if (is_unread) {
    expected = current->content.revision;
  }
  const auto text = expected ? text_of(*current) : fail(expected.error());
  if (!text) {
    return fail(text.error());
  }
  const bool is_stale = *expected != current->content.revision;
  if (is_stale && request.expected_revision) {
    return fail(guard.changed_since_read(*expected, *current));  // an explicit expectedRevision is a condition
  }
  auto edited = apply_edits(*text, edits);
  if (!edited) {
    // If others have changed the file, that explains the error better.
    const auto since = is_stale ? guard.changes_since(*expected, *current) : std::nullopt;
    Error error = edited.error();
    if (is_stale) {
      error.message += "\nThe file has changed since it was read" +
                       (since ? ". What others have changed:\n" + since->text : std::string());
    }
    return fail(std::move(error));
  }
  const bool changes_several = std::any_of(edited->replacements.begin(), edited->replacements.end(),
                                           [](std::size_t count) { return count > 1; });
  if (is_unread && changes_several) {
    return fail(unread);
  }
  if (is_stale && changes_several) {
    return fail(guard.changed_since_read(*expected, *current));
  }
  const Encoding encoding = current->content.page->encoding;
  auto bytes = encode(edited->text, encoding);
  if (!bytes) {
    return fail(bytes.error());
  }
  ChangeAnswer answer;
  answer.encoding = encoding;
  answer.replacements = std::move(edited->replacements);
  answer.diff = unified_diff(*text, edited->text, current->place.path);
  if (is_stale) {
    answer.since = guard.changes_since(*expected, *current).value_or(Diff{});
  }
  return PreparedEdit{std::move(*current), std::move(*bytes), std::move(answer)};
}

}  // namespace dockbridge::agent
