#include <doctest/doctest.h>

#include "cli/bridge.hpp"
#include "support/connected.hpp"
#include "support/field.hpp"

using namespace dockbridge;
using namespace dockbridge::test;

namespace {

/// Imitates a keeper of the first release, whose process printed a line and reads its input. The record, the spool and
/// the packets are those of version 1. Packets that version 1 did not know are written to a file.
constexpr const char* k_keeper_of_version_1 = R"py(
import json, os, select, socket, struct
STATE = '/var/lib/dockbridge/state/0/'
ID, NAME = 'proc_1_old', 'keeper_99_1700000000001'
journal = open(STATE + ID, 'a')
def record(**fields):
    journal.write('\n' + json.dumps(dict(fields, id=ID), separators=(',', ':')) + '\n')
    journal.flush()
output = b'from an older version\n'
def spool():
    header = struct.pack('<8sQQQQQ', b'DBSPOOL1', 1 << 24, 1 << 24, len(output), len(output), len(output))
    with open(STATE + ID + '.out', 'wb') as file:
        file.write(header.ljust(4096, b'\0') + output)
phase, end, code, cause = 0, 0, 0, 0
def state():
    return struct.pack('<BBHIBBBBiqQQQq', 1, 1, 0, 0, phase, end, cause, phase == 0, code, 4242, len(output), 0, 7, 0)
record(v=1, command='an old command', cwd='/', owner='local', rationale='r', startedAtMs=1700000000000)
record(pid=4242, keeper=NAME)
spool()
listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(STATE + NAME)
listener.listen(16)
links, growth = [], set()
while phase == 0:
    for ready in select.select([listener] + links, [], [])[0]:
        if ready is listener:
            links.append(listener.accept()[0])
            continue
        packet = ready.recv(40000)
        if not packet:
            links.remove(ready)
            continue
        version, order, reserved, value = struct.unpack('<BBHI', packet[:8])
        if order == 1:
            ready.send(state())
        elif order == 2:
            growth.add(ready)
        elif order == 3:
            output += b'got ' + packet[8:]
            spool()
            ready.send(struct.pack('<BBHI', 1, 2, 0, len(packet) - 8))
            for link in growth:
                link.send(state())
            growth.clear()
        elif order == 5:
            phase, end, code, cause = 2, 2, 15, packet[8]
            record(end=end, endCode=code, cause=cause, endedAtMs=1700000005000, closed=True)
            for link in links:
                link.send(state())
        elif order != 7:
            open('/app/unknown', 'a').write('%d ' % order)
            ready.close()
            links.remove(ready)
os.unlink(STATE + NAME)
)py";

}  // namespace

TEST_CASE("older: a process of version 0.1.0 works with every process tool") {
  Connected c;
  c.server.execute("true");  // makes the state directory
  c.server.execute("cat > /app/keeper.py", {{"stdin", k_keeper_of_version_1}});
  start_in_background(c.server, "exec python3 /app/keeper.py");
  const std::string id = "proc_1_old";
  eventually("the process is listed", [&] { return field(check(c.server, id), "isError") == false; });

  // The session of this server did not start the process.
  Server other({"-c", c.container.name()});
  other.initialize();
  for (Server* server : {&c.server, &other}) {
    const json fields = fields_of(check(*server, id));
    CAPTURE(fields.dump());
    CHECK(field(fields, "status") == "running");
    CHECK(field(fields, "stdout").get<std::string>().starts_with("from an older version\n"));
    CHECK(field(fields, "command") == "an old command");
    CHECK(field(fields, "pid") == 4242);
    bool listed = false;
    const json list = field(fields_of(server->call("check_process", json::object())), "processes");
    for (const json& process : list) {
      listed = listed || (field(process, "processId") == id && field(process, "status") == "running");
    }
    CHECK(listed);
    const json waits = check(*server, id, {{"waitFor", {{"input", true}, {"pattern", "never"}}}, {"timeout", 0.5}});
    CHECK(field(fields_of(waits), "happened") == "timeout");
    CHECK(field(error_of(check(*server, id, {{"screen", true}})), "code") == "keeper_too_old");
  }
  const json keyed =
      field(c.server.receive_answer(c.server.start_call("send_input", {{"processId", id}, {"input", "twice?"}},
                                                        {{"dockbridge/idempotencyKey", "k"}})),
            "result");
  CHECK(field(error_of(keyed), "code") == "keeper_too_old");
  cli::Options options;
  options.container.name = c.container.name();
  Log log{2, LogLevel::off, LogFormat::text};
  cli::Bridge bridge(options, log);
  const auto side = bridge.sandbox().control().send_side(id, "x");
  CHECK((!side && side.error().code == ErrorCode::keeper_too_old));
  const int waiting = other.start_call("check_process", {{"processId", id}, {"waitFor", {{"pattern", "^got x"}}}});
  c.server.call("send_input", {{"processId", id}, {"input", "x"}});
  CHECK(field(fields_of(field(other.receive_answer(waiting), "result")), "happened") == "pattern");
  CHECK(field(fields_of(check(c.server, id)), "stdout") == "from an older version\ngot x\n");
  const json ended = control(other, id, "terminate");
  CHECK(field(fields_of(ended), "signal") == "SIGTERM");
  CHECK(field(fields_of(ended), "cause") == "terminated");
  CHECK(field(fields_of(check(c.server, id)), "signal") == "SIGTERM");
  CHECK(field(fields_of(c.server.execute("test -e /app/unknown && cat /app/unknown; echo none")), "stdout") ==
        "none\n");
}
