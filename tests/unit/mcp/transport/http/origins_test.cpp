#include "mcp/transport/http/origins.hpp"

#include <doctest/doctest.h>

using namespace dockbridge::mcp::http;

TEST_CASE("origins: hostile hosts are refused") {
  const Origins origins({"box.example", "tls.example:8443"}, {});
  for (const std::string& host : {std::string(),
                                  std::string(":"),
                                  std::string(":80"),
                                  std::string("localhost:"),
                                  std::string("localhost:0"),
                                  std::string("localhost:x"),
                                  std::string("localhost:+80"),
                                  std::string("localhost:-1"),
                                  std::string("localhost:65536"),
                                  std::string("localhost:99999999999999999999"),
                                  std::string("localhost:080"),
                                  std::string("localhost:80:80"),
                                  std::string("localhost:80@evil.com"),
                                  std::string("localhost:x@evil.com"),
                                  std::string("user@localhost"),
                                  std::string("localhost@evil.com"),
                                  std::string("localhost/"),
                                  std::string("localhost#"),
                                  std::string("localhost?x"),
                                  std::string("localhost\\evil.com"),
                                  std::string(" localhost"),
                                  std::string("localhost "),
                                  std::string("localhost\t"),
                                  std::string("local%68ost"),
                                  std::string("localhost.evil.com"),
                                  std::string("evil.com"),
                                  std::string("evil.com:80"),
                                  std::string("http://localhost"),
                                  std::string("localhost,evil.com"),
                                  std::string("localhost\0.evil.com", 19),
                                  std::string("[::1"),
                                  std::string("::1"),
                                  std::string("[::1]x"),
                                  std::string("[::1]:"),
                                  std::string("[::1]80"),
                                  std::string("[::1]:x@evil.com"),
                                  std::string("[evil.com]"),
                                  std::string("[::1%25lo]"),
                                  std::string("[]"),
                                  std::string("[::2]"),
                                  std::string("[[::1]]"),
                                  std::string("127.0.0.1.evil.com"),
                                  std::string("127.1"),
                                  std::string("0x7f.0.0.1"),
                                  std::string("tls.example"),
                                  std::string("tls.example:443"),
                                  std::string(300, 'a')}) {
    CAPTURE(host);
    CHECK_FALSE(origins.allows_host(host));
  }
}

TEST_CASE("origins: local and configured hosts are served") {
  const Origins origins({"box.example", "tls.example:8443", "fe80::1"}, {});
  for (const char* host :
       {"localhost", "LOCALHOST", "localhost:1", "localhost:65535", "127.0.0.1", "127.0.0.1:80", "[::1]", "[::1]:80",
        "[0:0:0:0:0:0:0:1]:80", "BOX.example:443", "tls.example:8443", "[fe80::1]:7332"}) {
    CAPTURE(host);
    CHECK(origins.allows_host(host));
  }
}

TEST_CASE("origins: hostile origins are refused") {
  const Origins origins({"box.example"}, {"https://app.example", "http://dev.example:3000"});
  for (const char* origin : {"http://localhost:x@evil.com",
                             "http://localhost@evil.com",
                             "http://localhost:80@evil.com",
                             "http://localhost:@evil.com",
                             "http://user:localhost@evil.com",
                             "http://evil.com",
                             "http://evil.com#localhost",
                             "http://evil.com/localhost",
                             "http://evil.com?localhost",
                             "http://evil.com\\@localhost",
                             "http://localhost/",
                             "http://localhost/path",
                             "http://localhost?query",
                             "http://localhost#fragment",
                             "http://localhost:",
                             "http://localhost:0",
                             "http://localhost:65536",
                             "http://localhost:8080:80",
                             "http://[::1",
                             "http://[::1]x",
                             "http://::1",
                             "http://[::1]:x@evil.com",
                             "http://localhost.evil.com",
                             "http://localhost evil.com",
                             "http://localhost, http://evil.com",
                             "http://",
                             "://localhost",
                             "//localhost",
                             "localhost",
                             "localhost:3000",
                             "ftp://localhost",
                             "file://localhost",
                             "javascript://localhost",
                             "http:localhost",
                             "http:/localhost",
                             "http:///localhost",
                             "ht tp://localhost",
                             "null",
                             "",
                             "https://app.example.evil",
                             "https://app.example:8443",
                             "http://app.example",
                             "https://app.example/",
                             "https://x@app.example",
                             "http://dev.example",
                             "http://dev.example:30000"}) {
    CAPTURE(origin);
    CHECK_FALSE(origins.allows_origin(origin));
  }
}

TEST_CASE("origins: local and configured pages are served") {
  const Origins origins({"box.example"},
                        {"https://App.example", "http://dev.example:3000", "null", "chrome-extension://abcdef"});
  for (const char* origin :
       {"http://localhost:3000", "http://localhost", "HTTP://LOCALHOST", "https://127.0.0.1", "http://[::1]:8080",
        "https://box.example", "https://app.example", "https://app.example:443", "http://dev.example:3000", "null",
        "chrome-extension://abcdef"}) {
    CAPTURE(origin);
    CHECK(origins.allows_origin(origin));
  }
}

TEST_CASE("origins: an invalid configured host or origin matches nothing") {
  const Origins origins({"localhost:x@evil.com", "*", ""}, {"*", "http://*", "http://localhost:x@evil.com", ""});
  for (const char* text : {"*", "evil.com", "localhost:x@evil.com", ""}) {
    CHECK_FALSE(origins.allows_host(text));
    CHECK_FALSE(origins.allows_origin(std::string("http://") + text));
    CHECK_FALSE(origins.allows_origin(text));
  }
}

TEST_CASE("origins: a malformed authority or origin is not parsed, even to be configured") {
  for (const std::string& text : {std::string("user@localhost"), std::string(254, 'a'), std::string("[::1\0x]", 7),
                                  std::string("[::1]x80"), std::string("[::1]@80")}) {
    CAPTURE(text);
    CHECK_FALSE(parse_authority(text));
  }
  CHECK(parse_authority(std::string(253, 'a')));
  for (const char* text : {"ht tp://localhost", "1http://localhost", "://localhost", "*://localhost"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_origin(text));
  }
}

TEST_CASE("origins: only the default port of the scheme is left out") {
  CHECK(parse_origin("http://localhost:80") == "http://localhost");
  CHECK(parse_origin("https://localhost:443") == "https://localhost");
  CHECK(parse_origin("http://localhost:443") == "http://localhost:443");
  CHECK(parse_origin("https://localhost:80") == "https://localhost:80");
}
