import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const patience = 60_000;

/** A running dockbridge and the client's end of its stdio, with nothing from npm. */
export class StdioServer {
  #child;
  #waiting = new Map();
  #nextId = 1;

  /** The settings of the user who runs this are not read. */
  constructor(program, args) {
    const own = Object.entries(process.env).filter(([name]) => !name.startsWith('DOCKBRIDGE_'));
    const env = { ...Object.fromEntries(own), DOCKBRIDGE_LOG_LEVEL: 'warn', XDG_CONFIG_HOME: '/nonexistent' };
    this.#child = spawn(program, args, { env, stdio: ['pipe', 'pipe', 'inherit'] });
    const failed = (reason) => this.#failAll(new Error(`${program}: ${reason}`));
    this.#child.on('error', ({ message }) => failed(message));
    this.#child.on('exit', (code, signal) => failed(`ended with ${signal ?? code}`));
    this.#child.stdin.on('error', ({ message }) => failed(message));
    createInterface(this.#child.stdout).on('line', (line) => this.#receive(JSON.parse(line)));
  }

  async initialize(clientName) {
    const clientInfo = { name: clientName, version: '1' };
    await this.request('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
    this.#send({ method: 'notifications/initialized' });
  }

  /** Resolves to the result; rejects with a JSON-RPC error, or if there is no answer in time. */
  request(method, params) {
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => this.#failAll(new Error(`no answer to ${method}`)), patience);
      this.#waiting.set(id, { resolve, reject, late });
      this.#send({ id, method, params });
    });
  }

  /** tools/call; the server may report progress, as to the clients that people use. */
  call(params) {
    return this.request('tools/call', { ...params, _meta: { progressToken: this.#nextId } });
  }

  stop() {
    this.#child.stdin.end();
  }

  #send(message) {
    this.#child.stdin.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n');
  }

  #receive({ id, result, error }) {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) {
      return;
    }
    this.#waiting.delete(id);
    clearTimeout(waiting.late);
    if (error === undefined) {
      waiting.resolve(result);
    } else {
      waiting.reject(new Error(error.message));
    }
  }

  #failAll(error) {
    for (const { reject, late } of this.#waiting.values()) {
      clearTimeout(late);
      reject(error);
    }
    this.#waiting.clear();
  }
}
