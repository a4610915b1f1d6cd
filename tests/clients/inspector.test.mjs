// The Inspector's command line: one server process per request.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { after, before, describe, it } from 'node:test';

import { Container } from './support/container.mjs';
import { HttpServer, program } from './support/session.mjs';

const inspectorProgram = fileURLToPath(new URL('node_modules/.bin/mcp-inspector', import.meta.url));
const toolErrorExitCode = 5; // one of the Inspector's own

describe('the Inspector', () => {
  let container;
  let http;
  before(async () => {
    container = await Container.start();
    http = await HttpServer.start(container.name);
  });
  after(async () => {
    await http?.stop();
    await container?.remove();
  });

  /** Sends one request; resolves to the Inspector's exit code and what it printed. */
  function inspect(transport, era, ...question) {
    const engine = process.env.DOCKER_HOST === undefined ? [] : ['-e', `DOCKER_HOST=${process.env.DOCKER_HOST}`];
    const target =
      transport === 'HTTP'
        ? [http.url, '--header', `Authorization: Bearer ${http.token}`]
        : ['-e', 'DOCKBRIDGE_STRUCTURED=on', ...engine, program, '-c', container.name];
    const args = ['--cli', '-q', ...target, '--protocol-era', era, '--format', 'json'];
    return new Promise((resolve) => {
      execFile(process.execPath, [inspectorProgram, ...args, ...question], (error, stdout, stderr) => {
        resolve({ exitCode: error?.code ?? 0, stdout, stderr });
      });
    });
  }

  function call(transport, era, args) {
    const question = ['--tool-name', 'execute_command', '--tool-args-json', JSON.stringify(args)];
    return inspect(transport, era, '--method', 'tools/call', ...question);
  }

  const eras = ['legacy', 'auto', 'modern'];
  for (const [transport, era] of ['stdio', 'HTTP'].flatMap((transport) => eras.map((era) => [transport, era]))) {
    it(`lists tools that any model can be given, in the ${era} era over ${transport}`, async () => {
      const { exitCode, stdout, stderr } = await inspect(transport, era, '--method', 'tools/list', '--strict');
      assert.deepEqual({ exitCode, stderr }, { exitCode: 0, stderr: '' });
      const names = JSON.parse(stdout).result.tools.map((tool) => tool.name);
      assert.ok(names.includes('execute_command'), names.join());
    });

    it(`calls a tool in the ${era} era over ${transport}`, async () => {
      const command = `echo "it's 日本語"; exit 7`;
      const { exitCode, stdout, stderr } = await call(transport, era, { command, rationale: 'an Inspector test' });
      assert.deepEqual({ exitCode, stderr }, { exitCode: 0, stderr: '' });
      const { structuredContent } = JSON.parse(stdout).result;
      assert.equal(structuredContent.stdout, "it's 日本語\n");
      assert.equal(structuredContent.exitCode, 7);
    });

    it(`shows a tool's error in the ${era} era over ${transport}`, async () => {
      const { exitCode, stdout, stderr } = await call(transport, era, { command: 'true' });
      assert.equal(exitCode, toolErrorExitCode, stderr);
      assert.match(stdout + stderr, /rationale/);
    });
  }
});
