#include "agent/files/change/change_guard.hpp"

#include <fmt/format.h>

#include "agent/files/text/encoding.hpp"
#include "wire/file_names.hpp"

namespace dockbridge::agent {

namespace {

constexpr DiffLimits k_diff_in_error{.context = 3, .max_bytes = 5'000};

/// The history has a preview under this owner, so it does not count for other calls.
std::string previewer(const std::string& owner, const EditSetMode& mode) {
  return owner + (mode.is_replacement ? "\n(preview)" : "\n(preview of edits)");
}

}  // namespace

Result<std::string> ChangeGuard::expected_revision(const wire::ChangeRequest& request, const CurrentFile& current,
                                                   const EditSetMode* mode) const {
  const std::string& revision = current.content.revision;
  const std::string path = displayed_path(current.place.path);
  const auto seen = m_history.last_seen(request.owner, current.place.path);
  if (request.expected_revision) {
    for (const std::string& known : {revision, seen ? seen->revision : ""}) {
      if (wire::is_revision_start(*request.expected_revision) && known.starts_with(*request.expected_revision)) {
        return known;
      }
    }
    return *request.expected_revision;
  }
  const bool has_seen_this = seen && seen->revision == revision;
  if (mode != nullptr && (mode->preview || has_seen_this)) {
    return revision;
  }
  const auto previewed =
      mode != nullptr ? m_history.last_seen(previewer(request.owner, *mode), current.place.path) : std::nullopt;
  if (previewed && previewed->revision == revision) {
    return revision;
  }
  if (has_seen_this && seen->lines != SeenContent::k_all_lines) {
    return fail(ErrorCode::not_read, "File has not been read to its end: " + path,
                fmt::format("Read the rest of the file first (offset: {}). Or use file_edit", seen->lines));
  }
  if (seen) {
    return seen->revision;
  }
  if (previewed) {
    return fail(ErrorCode::file_changed, "File has changed since the preview: " + path,
                "Call with preview: true again");
  }
  return fail(ErrorCode::not_read, "File has not been read: " + path,
              mode != nullptr && mode->is_replacement ? "Call with preview: true first" : "");
}

Result<void> ChangeGuard::expect_unchanged(const wire::ChangeRequest& request, const CurrentFile& current) const {
  if (!current.file) {
    return request.expected_revision && !request.expected_revision->empty()
               ? fail(ErrorCode::file_changed, "File was removed: " + displayed_path(current.place.path),
                      "Leave expectedRevision out to create it")
               : Result<void>();
  }
  const auto expected = expected_revision(request, current);
  if (!expected) {
    return fail(expected.error());
  }
  return *expected == current.content.revision ? Result<void>() : fail(changed_since_read(*expected, current));
}

Error ChangeGuard::changed_since_read(const std::string& revision, const CurrentFile& current) const {
  const auto since = changes_since(revision, current);
  return {ErrorCode::file_changed,
          fmt::format("File has changed since it was read: {}, revision {} now{}", displayed_path(current.place.path),
                      current.content.revision.substr(0, wire::k_short_digits),
                      since ? ". What others have changed:\n" + since->text : std::string())};
}

std::optional<Diff> ChangeGuard::changes_since(const std::string& revision, const CurrentFile& current) const {
  const auto before = m_store.get(revision, k_max_diffed_bytes);
  const auto encoding = before ? detect_encoding(*before) : std::nullopt;
  if (!encoding || !current.content.page || !current.content.whole ||
      current.content.whole->size() > k_max_diffed_bytes) {
    return std::nullopt;
  }
  const auto then = decode(*before, *encoding);
  const auto now = decode(*current.content.whole, current.content.page->encoding);
  return then && now ? std::optional(unified_diff(*then, *now, current.place.path, k_diff_in_error)) : std::nullopt;
}

void ChangeGuard::note_preview(const std::string& owner, const EditSetMode& mode, const CurrentFile& current) const {
  m_history.note_seen(previewer(owner, mode), current.place.path, {current.content.revision});
}

}  // namespace dockbridge::agent
