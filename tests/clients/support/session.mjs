import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';

import { Client as Client2, StreamableHTTPClientTransport as HttpTransport2 } from '@modelcontextprotocol/client';
import { StdioClientTransport as Transport2 } from '@modelcontextprotocol/client/stdio';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as Transport1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as HttpTransport1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js';

export const program = process.env.DOCKBRIDGE_PROGRAM;
if (!existsSync(program ?? '')) {
  throw new Error(`DOCKBRIDGE_PROGRAM has to be the path of the dockbridge program, not '${program}'`);
}

const clientInfo = { name: 'dockbridge-client-tests', version: '1.0.0' };

/** How a client starts the server for a container. It logs warnings and errors to the tests' own stderr. */
export function serverFor(containerName) {
  return {
    command: program,
    args: ['-c', containerName],
    env: { ...process.env, DOCKBRIDGE_LOG_LEVEL: 'warn', DOCKBRIDGE_STRUCTURED: 'on' },
  };
}

/** A server that listens on HTTP, for any number of clients. Its creator stops it. */
export class HttpServer {
  #process;
  token = 'a-token-for-tests-0123456789';
  url;

  static async start(containerName) {
    const server = new HttpServer();
    server.#process = spawn(program, ['-c', containerName, '--http', '127.0.0.1:0'], {
      stdio: ['ignore', 'inherit', 'pipe'],
      env: { ...process.env, DOCKBRIDGE_TOKEN: server.token, DOCKBRIDGE_STRUCTURED: 'on' },
    });
    for await (const line of createInterface(server.#process.stderr)) {
      server.url = line.match(/url=(http:\S+)/)?.[1];
      if (server.url !== undefined) {
        break;
      }
    }
    server.#process.stderr.resume();
    return server;
  }

  /** Resolves to its exit code. */
  async stop() {
    const exited = once(this.#process, 'exit');
    this.#process.kill('SIGTERM');
    const [code] = await exited;
    return code;
  }
}

function transportTo(server, StdioTransport, HttpTransport) {
  if (server.url === undefined) {
    return new StdioTransport(server);
  }
  const headers = { Authorization: `Bearer ${server.token}` };
  return new HttpTransport(new URL(server.url), { requestInit: { headers } });
}

/** One connected client and its server process. Its creator closes it. */
class Session {
  /** Problems that the client found in the server's messages. */
  protocolErrors = [];
  #client;
  #transport;
  #callTool;

  constructor(client, transport, callTool) {
    this.#client = client;
    this.#transport = transport;
    this.#callTool = callTool;
    client.onerror = (error) => this.protocolErrors.push(error);
    client.fallbackNotificationHandler = async ({ method }) => {
      this.protocolErrors.push(new Error(`unexpected notification ${method}`));
    };
  }

  async connect() {
    await this.#client.connect(this.#transport);
    return this;
  }

  get client() {
    return this.#client;
  }

  /** The ChildProcess of the server. The transports do not expose it, and report too little about its end. */
  get server() {
    return this.#transport._process;
  }

  /** tools/call with a rationale. */
  call(tool, args, options) {
    return this.callAsGiven(tool, { rationale: 'a test of real clients', ...args }, options);
  }

  callAsGiven(tool, args, options) {
    return this.#callTool({ name: tool, arguments: args }, options);
  }

  /** Calls `listener` for each notification of a changed resource. Returns a function that ends this. */
  async watch(uri, listener) {
    if (this.#client.listen !== undefined && this.#client.getProtocolEra() === 'modern') {
      this.#client.setNotificationHandler('notifications/resources/updated', ({ params }) => listener(params.uri));
      const subscription = await this.#client.listen({ resourceSubscriptions: [uri] });
      return () => subscription.close();
    }
    const method =
      this.#client.listen === undefined ? ResourceUpdatedNotificationSchema : 'notifications/resources/updated';
    this.#client.setNotificationHandler(method, ({ params }) => listener(params.uri));
    await this.#client.subscribeResource({ uri });
    return () => this.#client.unsubscribeResource({ uri });
  }

  /** Calls `listener` with each message to log from `level` on. For the era in which that is asked for once. */
  async hearLogs(level, listener) {
    const method = this.#client.listen === undefined ? LoggingMessageNotificationSchema : 'notifications/message';
    this.#client.setNotificationHandler(method, ({ params }) => listener(params));
    await this.#client.setLoggingLevel(level);
  }

  async close() {
    await this.#client.close();
  }
}

function openSdk1(server) {
  const client = new Client1(clientInfo);
  const callTool = (params, options) => client.callTool(params, undefined, options);
  return new Session(client, transportTo(server, Transport1, HttpTransport1), callTool).connect();
}

/** `mode` as in the client's versionNegotiation option; undefined for what it does by itself. */
function openClient2(server, mode) {
  const client = new Client2(clientInfo, mode === undefined ? {} : { versionNegotiation: { mode } });
  const callTool = (params, options) => client.callTool(params, options);
  return new Session(client, transportTo(server, Transport2, HttpTransport2), callTool).connect();
}

/** The clients people use: each opens a Session with the server it is given. */
export const clients = [
  { name: 'TypeScript SDK 1.x', era: 'legacy', open: openSdk1 },
  { name: 'client 2.x by default', era: 'legacy', version: '2025-11-25', open: (server) => openClient2(server) },
  {
    name: 'client 2.x in auto mode',
    era: 'modern',
    version: '2026-07-28',
    open: (server) => openClient2(server, 'auto'),
  },
  {
    name: 'client 2.x pinned to 2026-07-28',
    era: 'modern',
    version: '2026-07-28',
    open: (server) => openClient2(server, { pin: '2026-07-28' }),
  },
];

export const autoClient = clients[2];
