// A client of 2025-11-25 that asks for a task: it gets the task at once, follows it and fetches its result.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { ResultSchema } from '@modelcontextprotocol/sdk/types.js';

import { Container } from './support/container.mjs';
import { eventually } from './support/eventually.mjs';
import { clients, HttpServer, serverFor } from './support/session.mjs';

const [sdk1] = clients;

for (const transport of ['stdio', 'HTTP']) {
  describe(`tasks over ${transport}`, { concurrency: 1 }, () => {
    let container;
    let http;
    let session;

    before(async () => {
      container = await Container.start();
      http = transport === 'HTTP' ? await HttpServer.start(container.name) : undefined;
      session = await sdk1.open(http ?? serverFor(container.name));
    });
    after(async () => {
      await session?.close();
      await http?.stop();
      await container?.remove();
    });

    const ask = (method, params) => session.client.request({ method, params }, ResultSchema);
    async function startTask(command) {
      const args = { command, rationale: 'a test of tasks' };
      const { task } = await ask('tools/call', { name: 'execute_command', arguments: args, task: { ttl: 60_000 } });
      assert.equal(task.status, 'working');
      return task.taskId;
    }

    it('are offered', async () => {
      assert.ok(session.client.getServerCapabilities().tasks.requests.tools.call);
      const { tools } = await session.client.listTools();
      assert.equal(tools.find(({ name }) => name === 'execute_command').execution.taskSupport, 'optional');
    });

    it('have the result of their command', async () => {
      const taskId = await startTask('sleep 0.5; echo done');
      const { tasks } = await ask('tasks/list', {});
      assert.ok(tasks.some((task) => task.taskId === taskId));
      const result = await ask('tasks/result', { taskId });
      assert.equal(result.structuredContent.stdout, 'done\n');
      assert.equal((await ask('tasks/get', { taskId })).status, 'completed');
    });

    it('end the whole process tree when they are cancelled', async () => {
      const sleeping = async () => (await container.processes()).filter((line) => line.startsWith('sleep 400'));
      const taskId = await startTask('sleep 400.5 & sleep 400');
      await eventually('both run', async () => (await sleeping()).length === 2);
      assert.equal((await ask('tasks/cancel', { taskId })).status, 'cancelled');
      await eventually('none of them runs', async () => (await sleeping()).length === 0);
    });

    it('are known by their ids only', async () => {
      await assert.rejects(ask('tasks/get', { taskId: 'task_00' }), /Task not found/);
    });
  });
}
