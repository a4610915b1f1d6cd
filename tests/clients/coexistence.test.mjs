// Several servers on one container, and servers that are only probed.

import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';

import { Container, docker, uniqueName } from './support/container.mjs';
import { eventually } from './support/eventually.mjs';
import { autoClient, clients, serverFor } from './support/session.mjs';

describe('two clients on one container', () => {
  let container;
  const sessions = [];

  before(async () => {
    container = await Container.start();
    for (const kind of [clients.at(0), clients.at(-1)]) {
      sessions.push(await kind.open(serverFor(container.name)));
    }
    await Promise.all(sessions.map((session) => session.client.listTools()));
  });

  after(async () => {
    await Promise.all(sessions.map((session) => session.close()));
    await container?.remove();
  });

  it('run commands at the same time', async () => {
    // Each waits for the other: neither could end if one server blocked the other.
    const meet = (mine, theirs) => `touch /tmp/${mine}; until [ -e /tmp/${theirs} ]; do sleep 0.05; done; echo ${mine}`;
    const results = await Promise.all([
      sessions[0].call('execute_command', { command: meet('first', 'second') }),
      sessions[1].call('execute_command', { command: meet('second', 'first') }),
    ]);
    assert.deepEqual(results.map((result) => result.structuredContent.stdout), ['first\n', 'second\n']);
  });

  it('reach the same background process, and it outlives the client that started it', async () => {
    const started = await sessions[0].call('execute_command', { command: 'cat', background: true });
    const { processId } = started.structuredContent;
    await sessions[0].close();
    const answered = await sessions[1].call('send_input', { processId, input: 'hello', eof: true });
    assert.equal(answered.structuredContent.stdout, 'hello\n');
    const ended = await sessions[1].call('check_process', { processId, timeout: 20 });
    assert.equal(ended.structuredContent.exitCode, 0);
  });

  it('have nothing to complain about', () => {
    assert.deepEqual(sessions.flatMap((session) => session.protocolErrors), []);
  });
});

describe('a client that probes with a throw-away server', () => {
  let directory;
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'dockbridge-clients-'));
  });
  after(() => rm(directory, { recursive: true }));

  /** Like serverFor, and every start adds the server's pid to a file. */
  function countedServerFor(containerName) {
    const starts = join(directory, containerName);
    const script = 'echo $$ >> "$0"; exec "$@"';
    const { command, args, env } = serverFor(containerName);
    const server = { command: 'sh', args: ['-c', script, starts, command, ...args], env };
    const pids = async () => (await readFile(starts, 'utf8')).trim().split('\n').map(Number);
    return { server, pids };
  }

  function isAlive(pid) {
    try {
      process.kill(pid, 0);
      return true;
    } catch {
      return false;
    }
  }

  async function probe(containerName) {
    const { server, pids } = countedServerFor(containerName);
    const session = await autoClient.open(server);
    try {
      await session.client.listTools();
      assert.equal(session.client.getProtocolEra(), 'modern');
      const [sibling, own, ...more] = await pids();
      assert.deepEqual(more, []);
      await eventually('the throw-away server has ended', () => !isAlive(sibling));
      assert.equal(isAlive(own), true);
      assert.equal(session.server.pid, own);
    } finally {
      await session.close();
    }
    assert.deepEqual((await pids()).filter(isAlive), []);
    assert.deepEqual(session.protocolErrors, []);
  }

  it('leaves a running container untouched', async () => {
    const container = await Container.start();
    try {
      const [processes, changes] = [await container.processes(), await container.changedPaths()];
      await probe(container.name);
      assert.deepEqual(await container.processes(), processes);
      assert.deepEqual(await container.changedPaths(), changes);
      assert.deepEqual((await container.inspect('.ExecIDs')) ?? [], []);
    } finally {
      await container.remove();
    }
  });

  it('does not start a container that is not running', async () => {
    const container = await Container.createWithoutStarting();
    try {
      await probe(container.name);
      assert.equal(await container.inspect('.State.Status'), 'created');
    } finally {
      await container.remove();
    }
  });

  it('does not create a container that does not exist', async () => {
    const name = uniqueName();
    await probe(name);
    assert.equal(await docker('ps', '--all', '--quiet', '--filter', `name=${name}`), '');
  });
});
