// The command-line agents that people use, without a terminal, an account or a network. Each has a home of its own, its
// model on loopback, and one MCP server on stdio, which is configured as the README says.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

import { commandSnippet, jsonSnippet } from './snippets.mjs';

const require = createRequire(import.meta.url);
const folderOf = (packageName) => dirname(require.resolve(`${packageName}/package.json`));
const { arch } = process;

async function writeIn(home, path, content) {
  await mkdir(dirname(join(home, path)), { recursive: true });
  await writeFile(join(home, path), content);
}

/**
 * Properties of a client: `command` starts it, `toolName` is the name of a tool for its model, `settings` are its files
 * besides the MCP server, by their path in its home, for the model at a URL. `addServer` adds the MCP server: arguments
 * of the client, or a file. `withLimit` is the same agent that waits only some seconds for a call, for clients whose
 * limit progress does not extend.
 */
export const agents = [
  {
    name: 'Claude Code',
    command: () => [join(folderOf(`@anthropic-ai/claude-code-linux-${arch}`), 'claude')],
    toolName: (tool) => `mcp__dockbridge__${tool}`,
    /** Finds tools that are not always loaded. */
    searchTool: 'ToolSearch',
    settings: () => ({}),
    addServer: async (program) => ({ args: await commandSnippet('claude mcp add', program) }),
    args: ['--print', 'go', '--allowedTools', 'mcp__dockbridge'],
    env: (model) => ({
      ANTHROPIC_API_KEY: 'none',
      ANTHROPIC_BASE_URL: model,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
    }),
    withLimit(seconds) {
      return { ...this, env: (model) => ({ ...this.env(model), MCP_TOOL_TIMEOUT: String(seconds * 1000) }) };
    },
  },
  {
    name: 'Codex',
    command() {
      const target = { x64: 'x86_64-unknown-linux-musl', arm64: 'aarch64-unknown-linux-musl' }[arch];
      return [join(folderOf(`@openai/codex-linux-${arch}`), 'vendor', target, 'bin', 'codex')];
    },
    toolName: (tool) => `mcp__dockbridge__${tool}`,
    settings: (model) => ({
      '.codex/config.toml': `
        model = "gpt-5"
        model_provider = "scripted"
        check_for_update_on_startup = false
        analytics.enabled = false
        model_providers.scripted = { name = "scripted", base_url = "${model}/v1", wire_api = "responses" }
      `,
    }),
    addServer: async (program) => ({ args: await commandSnippet('codex mcp add', program) }),
    args: [
      'exec',
      '--skip-git-repo-check',
      '--config',
      'mcp_servers.dockbridge.default_tools_approval_mode="approve"',
      'go',
    ],
    env: () => ({}),
  },
  {
    name: 'Gemini CLI',
    command: () => [process.execPath, join(folderOf('@google/gemini-cli'), 'bundle', 'gemini.js')],
    toolName: (tool) => `mcp_dockbridge_${tool}`,
    settings: () => ({
      '.gemini/settings.json': JSON.stringify({
        general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
        privacy: { usageStatisticsEnabled: false },
        security: { auth: { selectedType: 'gemini-api-key' } },
        telemetry: { enabled: false },
      }),
    }),
    addServer: async (program) => ({ args: await commandSnippet('gemini mcp add', program) }),
    args: ['--prompt', 'go', '--model', 'gemini-2.5-flash', '--skip-trust', '--approval-mode', 'yolo'],
    env: (model) => ({ GEMINI_API_KEY: 'none', GOOGLE_GEMINI_BASE_URL: model }),
    withLimit(seconds) {
      const addServer = async (program) => {
        const { args } = await this.addServer(program);
        return { args: [...args, '--timeout', String(seconds * 1000)] };
      };
      return { ...this, addServer };
    },
  },
  {
    name: 'opencode',
    command: () => [join(folderOf(`opencode-linux-${arch === 'x64' ? 'x64-baseline' : arch}`), 'bin', 'opencode')],
    toolName: (tool) => `dockbridge_${tool}`,
    settings: (model) => ({
      'work/opencode.json': JSON.stringify({
        autoupdate: false,
        share: 'disabled',
        model: 'scripted/scripted',
        small_model: 'scripted/scripted',
        provider: {
          scripted: {
            npm: '@ai-sdk/openai-compatible',
            options: { baseURL: `${model}/v1`, apiKey: 'none' },
            models: {
              scripted: {
                attachment: true,
                tool_call: true,
                modalities: { input: ['text', 'image'], output: ['text'] },
                limit: { context: 1_000_000, output: 10_000 },
              },
            },
          },
        },
      }),
    }),
    addServer: async (program) => ({
      file: '.config/opencode/opencode.json',
      content: await jsonSnippet('{"mcp": {"dockbridge":', program),
    }),
    args: ['run', 'go'],
    env: () => ({
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
      OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
      OPENCODE_DISABLE_MODELS_FETCH: '1',
    }),
  },
];

/** Starts `agent` in a process group of its own, with nothing of this machine's configuration. */
export async function startAgent(agent, home, model, program) {
  const cwd = join(home, 'work');
  await mkdir(cwd, { recursive: true });
  for (const [path, content] of Object.entries(agent.settings(model))) {
    await writeIn(home, path, content);
  }
  const [command, ...first] = agent.command();
  const env = { HOME: home, LANG: 'C.UTF-8', PATH: process.env.PATH, ...agent.env(model) };
  const added = await agent.addServer(program);
  if (added.file === undefined) {
    await promisify(execFile)(command, [...first, ...added.args], { cwd, env, timeout: 60_000 });
  } else {
    await writeIn(home, added.file, added.content);
  }

  const child = spawn(command, [...first, ...agent.args], {
    cwd,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = [];
  child.stdout.on('data', (chunk) => output.push(chunk));
  child.stderr.on('data', (chunk) => output.push(chunk));
  return {
    /** Its exit code, or the name of the signal that ended it. */
    exited: new Promise((resolve, reject) => {
      child.on('error', reject);
      child.on('close', (code, signal) => resolve(signal ?? code));
    }),
    output: () => Buffer.concat(output).toString(),
    /** Ends its process group. */
    kill() {
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch (error) {
        assert.equal(error.code, 'ESRCH');
      }
    },
  };
}
