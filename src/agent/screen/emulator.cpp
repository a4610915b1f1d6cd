#include "agent/screen/emulator.hpp"

#include <vterm.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "wire/terminal.hpp"

namespace dockbridge::agent {

namespace {

void on_typed(const char* bytes, std::size_t size, void* user) {
  static_cast<Emulator::CallbackState*>(user)->typed.append(bytes, size);
}

int on_property(VTermProp property, VTermValue* value, void* user) {
  auto& state = *static_cast<Emulator::CallbackState*>(user);
  if (property == VTERM_PROP_CURSORVISIBLE) {
    state.cursor_visible = value->boolean != 0;
  } else if (property == VTERM_PROP_ALTSCREEN) {
    state.alternate = value->boolean != 0;
  }
  return 1;
}

VTermKey to_vterm(const wire::Key& key) {
  using Kind = wire::Key::Kind;
  // In the order of Kind.
  static constexpr std::array<VTermKey, static_cast<std::size_t>(Kind::page_down) + 1> k_keys = {
      VTERM_KEY_NONE, VTERM_KEY_FUNCTION_0, VTERM_KEY_ENTER,  VTERM_KEY_TAB,     VTERM_KEY_BACKSPACE, VTERM_KEY_ESCAPE,
      VTERM_KEY_UP,   VTERM_KEY_DOWN,       VTERM_KEY_LEFT,   VTERM_KEY_RIGHT,   VTERM_KEY_INS,       VTERM_KEY_DEL,
      VTERM_KEY_HOME, VTERM_KEY_END,        VTERM_KEY_PAGEUP, VTERM_KEY_PAGEDOWN};
  return key.kind == Kind::function ? static_cast<VTermKey>(VTERM_KEY_FUNCTION(static_cast<int>(key.number)))
                                    : k_keys.at(static_cast<std::size_t>(key.kind));
}

/// Detects whether the program places something on the screen, or clears it.
struct PlacementWatch {
  bool has_placed = false;

  void text(std::string_view /*run*/) {}
  void control(char /*byte*/) {}
  void sequence(const TerminalParser::Sequence& sequence) { has_placed = has_placed || addresses_screen(sequence); }
};

std::string without_trailing_blanks(std::string text) {
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

}  // namespace

Emulator::Emulator(wire::TerminalSize size, std::uint64_t shown)
    : m_size(size),
      m_shown(shown),
      m_emulator(::vterm_new(size.rows, size.columns)),
      m_screen(::vterm_obtain_screen(m_emulator)) {
  ::vterm_set_utf8(m_emulator, 1);
  ::vterm_output_set_callback(m_emulator, on_typed, &m_state);
  static const VTermScreenCallbacks k_callbacks = [] {
    VTermScreenCallbacks callbacks{};
    callbacks.settermprop = on_property;
    return callbacks;
  }();
  ::vterm_screen_set_callbacks(m_screen, &k_callbacks, &m_state);
  ::vterm_screen_enable_altscreen(m_screen, 1);
  ::vterm_screen_reset(m_screen, 1);
}

Emulator::~Emulator() {
  ::vterm_free(m_emulator);
}

void Emulator::show(std::string_view output) {
  m_shown += output.size();
  PlacementWatch watch;
  m_parser.feed(output, watch);
  m_addressed = watch.has_placed ? m_shown : m_addressed;
  ::vterm_input_write(m_emulator, output.data(), output.size());
}

void Emulator::press(const wire::Key& key) {
  const auto modifiers = static_cast<VTermModifier>((key.shift ? VTERM_MOD_SHIFT : 0) | (key.alt ? VTERM_MOD_ALT : 0) |
                                                    (key.ctrl ? VTERM_MOD_CTRL : 0));
  if (key.kind == wire::Key::Kind::character) {
    // As most terminals do. The emulator would send some of them in a newer form that few programs support.
    m_state.typed += key.alt ? "\x1b" : "";
    m_state.typed += static_cast<char>(key.ctrl ? key.number & 0x1FU : key.number);
  } else {
    ::vterm_keyboard_key(m_emulator, to_vterm(key), modifiers);
  }
}

void Emulator::mark_paste(bool begins) {
  if (begins) {
    ::vterm_keyboard_start_paste(m_emulator);
  } else {
    ::vterm_keyboard_end_paste(m_emulator);
  }
}

std::string Emulator::take_typed() {
  return std::exchange(m_state.typed, {});
}

void Emulator::resize(wire::TerminalSize size) {
  m_size = size;
  ::vterm_set_size(m_emulator, size.rows, size.columns);
}

std::string Emulator::screen() const {
  VTermPos cursor{};
  ::vterm_state_get_cursorpos(::vterm_obtain_state(m_emulator), &cursor);
  wire::ScreenFacts facts;
  facts.size = m_size;
  facts.cursor_row = static_cast<std::uint16_t>(cursor.row);
  facts.cursor_column = static_cast<std::uint16_t>(cursor.col);
  facts.cursor_visible = m_state.cursor_visible;
  facts.alternate = m_state.alternate;
  facts.addressed = m_addressed;
  std::string text = wire::to_json(facts).dump() + '\n';
  std::vector<char> line(static_cast<std::size_t>(m_size.columns) * VTERM_MAX_CHARS_PER_CELL * 4 + 1);
  std::string blank_lines;
  for (int row = 0; row < m_size.rows; ++row) {
    const VTermRect rect{row, row + 1, 0, m_size.columns};
    const std::size_t size = ::vterm_screen_get_text(m_screen, line.data(), line.size(), rect);
    const std::string shown = without_trailing_blanks(std::string(line.data(), std::min(size, line.size())));
    blank_lines += '\n';
    if (!shown.empty()) {
      text += std::exchange(blank_lines, {}).substr(1) + shown + '\n';
    }
  }
  return text;
}

}  // namespace dockbridge::agent
