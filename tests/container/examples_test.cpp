// The transcripts in examples/ are replayed against the real program. DOCKBRIDGE_WRITE_DOCS=1 writes the replies into
// them.

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <regex>
#include <sstream>

#include "support/connected.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

// A transcript is Markdown. A fenced block "json TOOL" has the arguments of a call. The fenced block "text" after it
// has the reply.
constexpr const char* k_fence = "```";

std::string shown(const json& block) {
  const std::string type = field(block, "type");
  return type == "text"          ? field(block, "text").get<std::string>()
         : type == "image"       ? "[image: " + field(block, "mimeType").get<std::string>() + "]"
         : block.contains("uri") ? "[link: " + field(block, "uri").get<std::string>() + "]"
                                 : "[" + type + "]";
}

/// The reply as the page shows it. Images are named by their type. Ids of changes are random.
std::string shown_reply(const json& result) {
  std::string text;
  for (const json& block : field(result, "content")) {
    text += (text.empty() ? "" : "\n") + shown(block);
  }
  while (text.ends_with('\n')) {
    text.pop_back();
  }
  return std::regex_replace(text, std::regex("change [0-9a-f]{8}"), "change …");
}

struct Page {
  std::vector<std::string> lines;

  explicit Page(const std::string& text) {
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
      lines.push_back(line);
    }
  }
  /// The text of the fenced block after `at`, which is then the line of its end.
  std::string block(std::size_t& at) const {
    std::string text;
    for (++at; at < lines.size() && lines.at(at) != k_fence; ++at) {
      text += (text.empty() ? "" : "\n") + lines.at(at);
    }
    return text;
  }
};

/// The page with the replies that the program gives now.
std::string replay(const std::string& text, Server& server) {
  const Page page(text);
  const std::string call_fence = std::string(k_fence) + "json ";
  std::string renewed;
  std::string reply;
  for (std::size_t at = 0; at < page.lines.size(); ++at) {
    const std::string line = page.lines.at(at);
    renewed += line + "\n";
    if (line.starts_with(call_fence)) {
      const std::string arguments = page.block(at);
      renewed += arguments + "\n" + k_fence + "\n";
      reply = shown_reply(server.call(line.substr(call_fence.size()), json::parse(arguments), seconds(120)));
    } else if (line == std::string(k_fence) + "text") {
      (void)page.block(at);
      renewed += reply + "\n" + k_fence + "\n";
    }
  }
  return renewed;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

TEST_CASE("examples: the transcript of a data analysis is what the program replies") {
  const std::string path = std::string(DOCKBRIDGE_SOURCE_DIR) + "/examples/data-analysis.md";
  const std::string page = content_of(path);
  Connected c({"--init"}, "dockbridge-test:data");
  const std::string renewed = replay(page, c.server);
  if (std::getenv("DOCKBRIDGE_WRITE_DOCS") != nullptr) {
    std::ofstream(path) << renewed;
  } else {
    CHECK(renewed == page);
  }
}
