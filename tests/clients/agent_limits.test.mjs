// Agents that wait only a few seconds for a call: the command continues, and the next reply names it.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { agents } from './support/agents.mjs';
import { Container } from './support/container.mjs';
import { converse, textOf } from './support/scripted_conversation.mjs';

const limitSeconds = 4;
const patience = 60_000;

const calls = [
  { tool: 'execute_command', arguments: { command: 'sleep 300' } },
  { tool: 'execute_command', arguments: { command: 'echo afterwards' } },
];

describe("agents: a command outlives the client's limit", { concurrency: true }, () => {
  for (const agent of agents.filter(({ withLimit }) => withLimit !== undefined)) {
    it(agent.name, async () => {
      const container = await Container.start();
      try {
        const conversation = await converse(agent.withLimit(limitSeconds), container.name, calls, patience);
        assert.equal(conversation.results.length, calls.length, conversation.output);
        const [first, second] = conversation.results.map(textOf);
        assert.match(first, /timed out/);
        assert.match(second, /afterwards/);
        assert.match(second, /\bp\d+ `sleep 300`/);
        assert.ok((await container.processes()).includes('sleep 300'), 'the command was ended');
      } finally {
        await container.remove();
      }
    });
  }
});
