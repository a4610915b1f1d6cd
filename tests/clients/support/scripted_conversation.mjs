import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { startAgent } from './agents.mjs';
import { Captures } from './captures.mjs';
import { ModelServer } from './model.mjs';
import { program } from './session.mjs';

/** The texts of a result as its model receives them. */
export function textOf(parts) {
  const texts = parts.filter(({ type }) => type === 'text').map(({ text }) => text);
  return texts.join('\n');
}

/** Decides the next reply of the model by the results in the client's request, which has the whole conversation. */
class Script {
  /** The parts of each result, in the order of the calls. */
  results = [];
  /** The tools that had to be searched for. */
  searched = new Set();
  #agent;
  #calls;
  #captures = new Captures();

  constructor(agent, calls) {
    this.#agent = agent;
    this.#calls = calls;
  }

  next(received, offered) {
    const search = this.#agent.searchTool;
    // Clients also ask for titles and summaries, without tools.
    if (!offered.some((name) => name === search || name.startsWith(this.#agent.toolName('')))) {
      return { answer: 'A conversation' };
    }
    for (const { id, parts } of received) {
      this.#record(id, parts);
    }
    const call = this.#calls[this.results.length];
    if (call === undefined) {
      return { answer: 'Done' };
    }
    const tool = this.#agent.toolName(call.tool);
    const searchId = `search_${call.tool}`;
    if (!offered.includes(tool) && offered.includes(search) && !received.some(({ id }) => id === searchId)) {
      this.searched.add(call.tool);
      return { call: { id: searchId, tool: search, arguments: { query: `select:${tool}`, max_results: 1 } } };
    }
    const args = { ...this.#captures.fill(call.arguments), rationale: 'a test of real clients' };
    return { call: { id: `call_${this.results.length}`, tool, arguments: args } };
  }

  #record(id, parts) {
    if (id !== `call_${this.results.length}`) {
      return;
    }
    this.#captures.take(this.#calls[this.results.length].capture, textOf(parts));
    this.results.push(parts);
  }
}

/** A program that is dockbridge for one container, as run.sh is. */
async function writeServer(home, containerName) {
  const path = join(home, 'run.sh');
  await writeFile(path, `#!/bin/sh\nDOCKBRIDGE_LOG_LEVEL=warn exec '${program}' -c '${containerName}'\n`, {
    mode: 0o755,
  });
  return path;
}

/**
 * Runs `agent`, with dockbridge for a container as its MCP server, until its model has made all `calls` or `patience`
 * milliseconds have passed. Returns the results, the tools that had to be searched for, the exit status or signal of
 * the agent and its output. Its processes and files are removed afterwards. With DOCKBRIDGE_KEEP_REQUESTS=DIR its
 * requests to the model are stored there.
 */
export async function converse(agent, containerName, calls, patience) {
  const home = await mkdtemp(join(tmpdir(), 'dockbridge-agent-'));
  const script = new Script(agent, calls);
  const model = await ModelServer.start((received, offered) => script.next(received, offered));
  try {
    const running = await startAgent(agent, home, model.url, await writeServer(home, containerName));
    const late = setTimeout(() => running.kill(), patience);
    const ended = await running.exited;
    clearTimeout(late);
    running.kill();
    if (process.env.DOCKBRIDGE_KEEP_REQUESTS !== undefined) {
      await writeFile(join(process.env.DOCKBRIDGE_KEEP_REQUESTS, `${agent.name}.json`), JSON.stringify(model.requests));
    }
    return { results: script.results, searched: script.searched, ended, output: running.output() };
  } finally {
    model.stop();
    await rm(home, { recursive: true, force: true, maxRetries: 3 });
  }
}
