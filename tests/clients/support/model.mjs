import { once } from 'node:events';
import { createServer } from 'node:http';

import { modelApis } from './model_apis.mjs';

/**
 * A scripted model on loopback: `script` decides its replies. `script` is called with the tool results in a
 * request and the names of the offered tools; it returns {call: {id, tool, arguments}} or {answer}.
 */
export class ModelServer {
  /** Requests in the order of their arrival, for debugging. */
  requests = [];
  #http;
  #script;

  static async start(script) {
    const server = new ModelServer();
    server.#script = script;
    server.#http = createServer((request, response) => server.#serve(request, response));
    server.#http.listen(0, '127.0.0.1');
    await once(server.#http, 'listening');
    return server;
  }

  get url() {
    return `http://127.0.0.1:${this.#http.address().port}`;
  }

  stop() {
    this.#http.closeAllConnections();
    this.#http.close();
  }

  async #serve(request, response) {
    const chunks = [];
    for await (const chunk of request) {
      chunks.push(chunk);
    }
    const raw = Buffer.concat(chunks).toString();
    const path = request.url.split('?')[0];
    const api = modelApis.find(({ accepts }) => request.method === 'POST' && accepts(path));
    this.requests.push({ method: request.method, path: request.url, body: raw });
    if (api === undefined) {
      response.writeHead(404, { 'content-type': 'application/json' }).end('{"error": {"message": "not found"}}');
      return;
    }
    const body = JSON.parse(raw);
    const { type, content } = api.reply(body, this.#script(api.results(body), api.toolNames(body)), path);
    response.writeHead(200, { 'content-type': type }).end(content);
  }
}
