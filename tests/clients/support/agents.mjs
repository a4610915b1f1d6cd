// The command-line agents that people use, each without a terminal, an account or a network: a home of its own, the model
// on loopback, one MCP server on stdio.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const require = createRequire(import.meta.url);
const folderOf = (packageName) => dirname(require.resolve(`${packageName}/package.json`));
const { arch } = process;

async function writeJson(path, value) {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, JSON.stringify(value, null, 2));
}

/**
 * `prepare` writes the configuration into `home`; it returns the command line and the environment. `server` is
 * {command, args, env} of the MCP server, `timeout` its limit for a call in seconds, undefined for the client's own.
 */
export const agents = [
  {
    name: 'Claude Code',
    /** Finds tools that are not always loaded. */
    searchTool: 'ToolSearch',
    toolName: (tool) => `mcp__dockbridge__${tool}`,
    async prepare({ home, model, server, timeout }) {
      const config = join(home, 'mcp.json');
      await writeJson(config, { mcpServers: { dockbridge: server } });
      return {
        command: join(folderOf(`@anthropic-ai/claude-code-linux-${arch}`), 'claude'),
        args: ['--print', 'go', '--mcp-config', config, '--strict-mcp-config', '--allowedTools', 'mcp__dockbridge'],
        env: {
          ANTHROPIC_API_KEY: 'none',
          ANTHROPIC_BASE_URL: model,
          CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
          DISABLE_AUTOUPDATER: '1',
          ...(timeout === undefined ? {} : { MCP_TOOL_TIMEOUT: String(timeout * 1000) }),
        },
      };
    },
  },
  {
    name: 'Codex',
    toolName: (tool) => `mcp__dockbridge__${tool}`,
    async prepare({ home, model, server, timeout }) {
      const config = [
        'model = "gpt-5"',
        'model_provider = "scripted"',
        'check_for_update_on_startup = false',
        '[analytics]',
        'enabled = false',
        '[model_providers.scripted]',
        'name = "scripted"',
        `base_url = "${model}/v1"`,
        'wire_api = "responses"',
        '[mcp_servers.dockbridge]',
        `command = ${JSON.stringify(server.command)}`,
        `args = ${JSON.stringify(server.args)}`,
        'default_tools_approval_mode = "approve"',
        ...(timeout === undefined ? [] : [`tool_timeout_sec = ${timeout}`]),
        '[mcp_servers.dockbridge.env]',
        ...Object.entries(server.env).map(([key, value]) => `${key} = ${JSON.stringify(value)}`),
      ];
      await mkdir(join(home, '.codex'), { recursive: true });
      await writeFile(join(home, '.codex', 'config.toml'), config.join('\n') + '\n');
      const vendor = join(folderOf(`@openai/codex-linux-${arch}`), 'vendor');
      const target = { x64: 'x86_64-unknown-linux-musl', arm64: 'aarch64-unknown-linux-musl' }[arch];
      return {
        command: join(vendor, target, 'bin', 'codex'),
        args: ['exec', '--skip-git-repo-check', 'go'],
        env: { CODEX_HOME: join(home, '.codex') },
      };
    },
  },
  {
    name: 'Gemini CLI',
    toolName: (tool) => `mcp_dockbridge_${tool}`,
    async prepare({ home, model, server, timeout }) {
      await writeJson(join(home, '.gemini', 'settings.json'), {
        general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
        privacy: { usageStatisticsEnabled: false },
        security: { auth: { selectedType: 'gemini-api-key' } },
        telemetry: { enabled: false },
        mcpServers: {
          dockbridge: { ...server, trust: true, ...(timeout === undefined ? {} : { timeout: timeout * 1000 }) },
        },
      });
      return {
        command: process.execPath,
        args: [join(folderOf('@google/gemini-cli'), 'bundle', 'gemini.js'), '--prompt', 'go', '--model', 'gemini-2.5-flash', '--skip-trust'],
        env: { GEMINI_API_KEY: 'none', GOOGLE_GEMINI_BASE_URL: model },
      };
    },
  },
  {
    name: 'opencode',
    toolName: (tool) => `dockbridge_${tool}`,
    async prepare({ home, model, server, timeout }) {
      const config = join(home, 'opencode.json');
      await writeJson(config, {
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
        mcp: {
          dockbridge: {
            type: 'local',
            command: [server.command, ...server.args],
            environment: server.env,
            enabled: true,
            ...(timeout === undefined ? {} : { timeout: timeout * 1000 }),
          },
        },
      });
      return {
        command: join(folderOf(`opencode-linux-${arch === 'x64' ? 'x64-baseline' : arch}`), 'bin', 'opencode'),
        args: ['run', 'go'],
        env: {
          OPENCODE_CONFIG: config,
          OPENCODE_DISABLE_AUTOUPDATE: '1',
          OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
          OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
          OPENCODE_DISABLE_MODELS_FETCH: '1',
        },
      };
    },
  },
];

/** Starts an agent in a process group of its own, with nothing of this machine's configuration. */
export async function startAgent(agent, settings) {
  const { command, args, env } = await agent.prepare(settings);
  const work = join(settings.home, 'work');
  await mkdir(work, { recursive: true });
  const child = spawn(command, args, {
    cwd: work,
    detached: true,
    env: { HOME: settings.home, LANG: 'C.UTF-8', PATH: process.env.PATH, ...env },
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
    /** Ends what is left of its process group. */
    kill() {
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch (error) {
        assert.equal(error.code, 'ESRCH');
      }
    },
  };
}
