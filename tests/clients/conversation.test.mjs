// Requirements of every client, of either era. Each client has its own container.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { Ajv2020 } from 'ajv/dist/2020.js';

import { Container } from './support/container.mjs';
import { eventually } from './support/eventually.mjs';
import { clients, HttpServer, serverFor } from './support/session.mjs';

const awkwardText = `it's "quoted" \\ and \`ticked\`, $HOME, 100 % | & ; <tag>\n\n  日本語, naïve, 🐳 and\ta tab\n`;

/** The arguments in the example that ends a tool's description. */
function textOf(result) {
  return result.content.map((part) => part.text).join('');
}

const pairs = clients.flatMap((kind) => ['stdio', 'HTTP'].map((transport) => ({ kind, transport })));

describe('the server and', { concurrency: 4 }, () => {
  for (const { kind, transport } of pairs) {
    describe(`${kind.name} over ${transport}`, { concurrency: 1 }, () => {
      let container;
      let http;
      let session;

      before(async () => {
        container = await Container.start();
        http = transport === 'HTTP' ? await HttpServer.start(container.name) : undefined;
        session = await kind.open(http ?? serverFor(container.name));
        await session.client.listTools(); // from here on the client checks results against the output schemas
      });

      after(async () => {
        await session?.close();
        await http?.stop();
        await container?.remove();
      });

      it('agree on a revision and introduce themselves', () => {
        assert.equal(session.client.getServerVersion().name, 'dockbridge');
        assert.match(session.client.getServerVersion().version, /^\d+\.\d+\.\d+/);
        assert.ok(session.client.getServerCapabilities().tools);
        assert.match(session.client.getInstructions(), /execute_command/);
        if (kind.version !== undefined) {
          assert.equal(session.client.getProtocolEra(), kind.era);
          assert.equal(session.client.getNegotiatedProtocolVersion(), kind.version);
        }
      });

      if (kind.era === 'legacy') {
        it('exchange a ping', async () => {
          await session.client.ping();
        });
      }

      it('share tools whose schemas are valid', async () => {
        const { tools } = await session.client.listTools();
        const names = tools.map((tool) => tool.name);
        for (const name of ['execute_command', 'check_process', 'send_input']) {
          assert.ok(names.includes(name), `${name} is missing`);
        }
        const ajv = new Ajv2020({ strict: true, allErrors: true });
        for (const tool of tools) {
          assert.ok(tool.title, tool.name);
          assert.ok(tool.description, tool.name);
          ajv.compile(tool.outputSchema);
          ajv.compile(tool.inputSchema);
        }
      });

      it('run a command and report its output and exit code', async () => {
        const result = await session.call('execute_command', { command: 'echo out; echo err >&2; exit 3' });
        assert.ok(!result.isError);
        assert.equal(result.structuredContent.status, 'completed');
        assert.equal(result.structuredContent.exitCode, 3);
        assert.equal(result.structuredContent.stdout, 'out\n');
        assert.equal(result.structuredContent.stderr, 'err\n');
        assert.match(textOf(result), /out\n\[stderr\]\nerr\n[^]*Exit code: 3/);
      });

      it('keep quotes, newlines and all of Unicode as they are', async () => {
        const typed = await session.call('execute_command', { command: `cat <<'END'\n${awkwardText}END` });
        assert.equal(typed.structuredContent.stdout, awkwardText);
        const piped = await session.call('execute_command', { command: 'cat', stdin: awkwardText });
        assert.equal(piped.structuredContent.stdout, awkwardText);
        const inherited = await session.call('execute_command', {
          command: 'printf %s "$AWKWARD"',
          env: { AWKWARD: awkwardText },
        });
        assert.equal(inherited.structuredContent.stdout, awkwardText);
        assert.ok(textOf(inherited).includes(awkwardText.trimEnd()));
      });

      it('treat bad arguments as a result that says what to do', async () => {
        const result = await session.callAsGiven('execute_command', { command: 'true' });
        assert.equal(result.isError, true);
        assert.match(textOf(result), /rationale/);
      });

      it('treat an unknown process as a result that says what to do', async () => {
        const result = await session.call('check_process', { processId: 'proc_1_nosuchprocess' });
        assert.equal(result.isError, true);
        assert.match(textOf(result), /proc_1_nosuchprocess/);
      });

      it('treat an unknown tool as a protocol error', async () => {
        await assert.rejects(session.call('no_such_tool', {}), { code: -32602, message: /no_such_tool/ });
      });

      it('show progress that outlasts a short client timeout', async () => {
        const seen = [];
        const result = await session.call(
          'execute_command',
          { command: 'for i in 1 2 3 4 5; do echo $i; sleep 1; done' },
          { onprogress: (progress) => seen.push(progress), timeout: 4000, resetTimeoutOnProgress: true },
        );
        assert.equal(result.structuredContent.stdout, '1\n2\n3\n4\n5\n');
        assert.ok(seen.length >= 2, `${seen.length} notifications`);
        for (const [i, { progress, message }] of seen.entries()) {
          assert.ok(i === 0 || progress > seen[i - 1].progress, 'progress has to grow');
          assert.equal(typeof message, 'string');
        }
      });

      it('show output while the command still runs', async () => {
        const resume = () => session.call('execute_command', { command: 'touch /tmp/resumed' });
        let resumed;
        const result = await session.call(
          'execute_command',
          { command: 'rm -f /tmp/resumed; echo "first words"; until [ -e /tmp/resumed ]; do sleep 0.1; done' },
          {
            onprogress: ({ message }) => {
              resumed ??= message === 'first words' ? resume() : undefined;
            },
          },
        );
        await resumed;
        assert.ok(resumed, 'the output was not shown');
        assert.equal(result.structuredContent.returned, 'ended');
      });

      if (kind.era === 'legacy') {
        it('log how calls went, if that is asked for', async () => {
          const logged = [];
          await session.hearLogs('warning', (message) => logged.push(message));
          await session.call('execute_command', { command: 'true' });
          await session.callAsGiven('execute_command', { command: 'true' });
          await eventually('the failed call is logged', () => logged.length > 0);
          await session.hearLogs('emergency', () => undefined);
          assert.deepEqual(
            logged.map(({ level, data }) => [level, data.tool, data.outcome]),
            [['warning', 'execute_command', 'bad_arguments']],
          );
        });
      }

      it('end the whole process tree when the client cancels', async () => {
        const sleeping = async () => (await container.processes()).filter((line) => line.startsWith('sleep 300'));
        const cancel = new AbortController();
        const call = session.call(
          'execute_command',
          { command: '(sleep 300.25 & setsid sleep 300.5 & wait) & sleep 300' },
          { signal: cancel.signal },
        );
        const refused = assert.rejects(call);
        await eventually('all three run', async () => (await sleeping()).length === 3);
        cancel.abort();
        await refused;
        await eventually('none of them runs', async () => (await sleeping()).length === 0);
        const next = await session.call('execute_command', { command: 'echo still here' });
        assert.equal(next.structuredContent.stdout, 'still here\n');
      });

      it('talk with a process in the background', async () => {
        const started = await session.call('execute_command', { command: 'cat', background: true });
        const { processId } = started.structuredContent;
        assert.equal(started.structuredContent.status, 'running');
        assert.match(textOf(started), /^p\d+ (waits for input|is running in the background)/);

        const listed = await session.call('check_process', {});
        const entry = listed.structuredContent.processes.find((process) => process.processId === processId);
        assert.equal(entry.status, 'running');
        assert.equal(entry.command, 'cat');

        const answered = await session.call('send_input', { processId, input: awkwardText, autoNewline: false });
        assert.equal(answered.structuredContent.stdout, awkwardText);

        await session.call('send_input', { processId, input: 'the end', eof: true });
        const ended = await session.call('check_process', { processId, timeout: 20, all: true });
        assert.equal(ended.structuredContent.status, 'completed');
        assert.equal(ended.structuredContent.exitCode, 0);
        assert.equal(ended.structuredContent.stdout, `${awkwardText}the end\n`);
      });

      it('answer many calls side by side, each with its own result', async () => {
        const numbers = Array.from({ length: 20 }, (_, i) => i);
        const results = await Promise.all(
          numbers.map((i) => session.call('execute_command', { command: `echo ${i}; exit ${i}` })),
        );
        assert.deepEqual(results.map((result) => result.structuredContent.exitCode), numbers);
        assert.deepEqual(results.map((result) => result.structuredContent.stdout), numbers.map((i) => `${i}\n`));
      });

      it('share resources, and are notified when one changes', async () => {
        const { resources } = await session.client.listResources();
        const ours = resources.map(({ uri }) => uri).filter((uri) => uri.startsWith('dockbridge:'));
        assert.deepEqual(ours, ['dockbridge://container', 'dockbridge://processes']);
        const facts = await session.client.readResource({ uri: 'dockbridge://container' });
        assert.equal(JSON.parse(facts.contents[0].text).container, container.name);

        const started = await session.call('execute_command', { command: 'cat', background: true });
        const { processId } = started.structuredContent;
        const uri = `dockbridge://process/${processId}/stdout`;
        const changed = [];
        const stop = await session.watch(uri, (what) => changed.push(what));
        await session.call('send_input', { processId, input: 'news' });
        await eventually('the change is reported', () => changed.includes(uri));
        const output = await session.client.readResource({ uri });
        assert.equal(output.contents[0].text, 'news\n');
        await stop();

        const { completion } = await session.client.complete({
          ref: { type: 'ref/resource', uri: 'dockbridge://process/{processId}/stdout' },
          argument: { name: 'processId', value: processId.slice(0, 8) },
        });
        assert.ok(completion.values.includes(processId), completion.values.join());
        await session.call('control_process', { processId, action: 'kill' });
        await assert.rejects(session.client.readResource({ uri: 'dockbridge://nothing' }), /Resource not found/);
      });

      it('share prompts', async () => {
        const { prompts } = await session.client.listPrompts();
        assert.ok(prompts.some(({ name }) => name === 'diagnose_build'));
        const prompt = await session.client.getPrompt({ name: 'diagnose_build', arguments: { command: 'make -k' } });
        assert.match(prompt.messages[0].content.text, /make -k/);
      });

      it('report no protocol error', () => {
        assert.deepEqual(session.protocolErrors, []);
      });

      if (transport === 'HTTP') {
        it('close cleanly when the server is stopped', async () => {
          assert.equal(await http.stop(), 0);
          http = undefined;
        });
        return;
      }

      it('close without a signal when the client disconnects', async () => {
        const { server } = session;
        assert.equal(server.exitCode, null);
        await session.close();
        assert.equal(server.signalCode, null);
        assert.equal(server.exitCode, 0);
      });
    });
  }
});
