#include "wire/fields.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

using namespace dockbridge;
using nlohmann::json;
using wire::Field;

namespace {

/// The error of a read, or an empty text.
template <typename Read>
std::string error_of(const json& head, Read read) {
  const auto result = wire::read_fields(head, ErrorCode::bad_request, read);
  return result ? "" : result.error().message;
}

}  // namespace

TEST_CASE("fields: values of the right type and range are read") {
  const json head = {{"n", 7}, {"s", -7}, {"f", true}, {"t", "x"}, {"a", {"p", "q"}}, {"o", {{"i", 1}}}};
  const Field field(head);
  CHECK(field.at("n").number(7) == 7);
  CHECK(field.at("s").signed_number(7) == -7);
  CHECK(field.at("n").signed_number() == 7);
  CHECK(field.at("f").flag());
  CHECK(field.at("t").text() == "x");
  const Field array = field.at("a");
  CHECK(array.elements().at(1).text() == "q");
  const Field object = field.at("o");
  CHECK(object.at("i").number() == 1);
  CHECK_FALSE(field.find("absent"));
}

TEST_CASE("fields: an error has the code of the reader and the path of the field") {
  const json head = {{"until", {{"port", "80"}}}, {"edits", {{1, 2}, {3, "x"}}}};
  CHECK(error_of(head, [](const Field& it) { return it.at("absent").number(); }) == "Malformed message: absent");
  CHECK(error_of(head, [](const Field& it) {
          const Field until = it.at("until");
          return until.at("port").number();
        }) == "Malformed message: until.port");
  CHECK(error_of(head, [](const Field& it) {
          const Field edits = it.at("edits");
          std::uint64_t sum = 0;
          for (const Field& edit : edits.elements()) {
            for (const Field& number : edit.elements()) {
              sum += number.number();
            }
          }
          return sum;
        }) == "Malformed message: edits[1][1]");
  CHECK(error_of(json::array(), [](const Field& it) { return it.at("x").number(); }) == "Malformed message: head");
}

TEST_CASE("fields: numbers out of range and values of another type are rejected") {
  const json head = {{"big", UINT64_MAX}, {"minus", -1}, {"half", 0.5}, {"text", "1"}, {"list", {1, 2, 3}}};
  const auto rejects = [&](auto read) { return !error_of(head, read).empty(); };
  CHECK(rejects([](const Field& it) { return it.at("big").number(); }));
  CHECK(rejects([](const Field& it) { return it.at("big").signed_number(UINT64_MAX); }));
  CHECK(rejects([](const Field& it) { return it.at("minus").number(); }));
  CHECK(rejects([](const Field& it) { return it.at("minus").signed_number(0); }));
  CHECK(rejects([](const Field& it) { return it.at("half").number(); }));
  CHECK(rejects([](const Field& it) { return it.at("half").signed_number(); }));
  CHECK(rejects([](const Field& it) { return it.at("text").flag(); }));
  CHECK(rejects([](const Field& it) { return it.at("minus").text(); }));
  CHECK(rejects([](const Field& it) { return it.at("text").numbers<1>(); }));
  CHECK(rejects([](const Field& it) { return it.at("list").numbers<2>(); }));
  CHECK(rejects([](const Field& it) {
    const Field list = it.at("list");
    return list.elements(2).size();
  }));
}
