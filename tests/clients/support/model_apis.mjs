// The model APIs that clients speak. Each has:
//   accepts(path)           whether a request to this path is of this API
//   toolNames(body)         names of the tools that the model is offered
//   results(body)           tool results so far: [{id, parts}], parts as the model receives them
//   reply(body, say, path)  {type, content} of the response; say is {call: {id, tool, arguments}} or {answer}

/** One part of a tool result, as the model receives it. */
const text = (value) => ({ type: 'text', text: value });
const image = (mimeType, data) => ({ type: 'image', mimeType, data });

function imageFromUrl(url) {
  const [, mimeType, data] = /^data:([^;]+);base64,(.*)$/s.exec(url) ?? [];
  return mimeType === undefined ? text(url) : image(mimeType, data);
}

function serverSentEvents(events, named) {
  return events
    .map(
      (event) =>
        (named ? `event: ${event.type}\n` : '') +
        `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`,
    )
    .join('');
}

/** Anthropic messages, as Claude Code speaks it. */
const anthropic = {
  accepts: (path) => path === '/v1/messages',

  toolNames: (body) => (body.tools ?? []).map(({ name }) => name),

  results(body) {
    const blocks = body.messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
    return blocks
      .filter(({ type }) => type === 'tool_result')
      .map(({ tool_use_id: id, content }) => ({ id, parts: anthropic.parts(content) }));
  },

  parts(content) {
    if (typeof content === 'string') {
      return [text(content)];
    }
    return (content ?? []).map((block) =>
      block.type === 'image'
        ? image(block.source.media_type, block.source.data)
        : text(block.text ?? JSON.stringify(block)),
    );
  },

  reply(body, { call, answer }) {
    const block =
      call === undefined
        ? { type: 'text', text: answer }
        : { type: 'tool_use', id: call.id, name: call.tool, input: call.arguments };
    const message = {
      id: `msg_${Date.now()}`,
      type: 'message',
      role: 'assistant',
      model: body.model,
      content: [block],
      stop_reason: call === undefined ? 'end_turn' : 'tool_use',
      stop_sequence: null,
      usage: { input_tokens: 10, output_tokens: 10 },
    };
    if (!body.stream) {
      return { type: 'application/json', content: JSON.stringify(message) };
    }
    const delta =
      call === undefined
        ? { type: 'text_delta', text: answer }
        : { type: 'input_json_delta', partial_json: JSON.stringify(call.arguments) };
    const opened = call === undefined ? { type: 'text', text: '' } : { ...block, input: {} };
    const events = [
      { type: 'message_start', message: { ...message, content: [], stop_reason: null } },
      { type: 'content_block_start', index: 0, content_block: opened },
      { type: 'content_block_delta', index: 0, delta },
      { type: 'content_block_stop', index: 0 },
      {
        type: 'message_delta',
        delta: { stop_reason: message.stop_reason, stop_sequence: null },
        usage: { output_tokens: 10 },
      },
      { type: 'message_stop' },
    ];
    return { type: 'text/event-stream', content: serverSentEvents(events, true) };
  },
};

/** OpenAI responses, as Codex speaks it. */
const responses = {
  accepts: (path) => path === '/v1/responses',

  /** Tools of an MCP server are functions in a namespace. */
  toolNames: (body) =>
    (body.tools ?? []).flatMap((tool) =>
      tool.type === 'namespace' ? tool.tools.map(({ name }) => `${tool.name}__${name}`) : [tool.name],
    ),

  results(body) {
    return body.input
      .filter(({ type }) => type === 'function_call_output')
      .map(({ call_id: id, output }) => ({ id, parts: responses.parts(output) }));
  },

  parts(output) {
    if (typeof output === 'string') {
      return [text(output)];
    }
    return output.map((part) =>
      part.type === 'input_image' ? imageFromUrl(part.image_url) : text(part.text ?? JSON.stringify(part)),
    );
  },

  reply(body, { call, answer }) {
    const item =
      call === undefined
        ? {
            type: 'message',
            id: 'msg_1',
            role: 'assistant',
            status: 'completed',
            content: [{ type: 'output_text', text: answer, annotations: [] }],
          }
        : {
            type: 'function_call',
            id: `fc_${call.id}`,
            call_id: call.id,
            status: 'completed',
            ...responses.named(body, call.tool),
            arguments: JSON.stringify(call.arguments),
          };
    const response = { id: `resp_${Date.now()}`, object: 'response', model: body.model, output: [item] };
    const usage = { input_tokens: 10, output_tokens: 10, total_tokens: 20 };
    const events = [
      { type: 'response.created', response: { ...response, output: [], status: 'in_progress' } },
      { type: 'response.output_item.added', output_index: 0, item },
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response: { ...response, status: 'completed', usage } },
    ];
    return { type: 'text/event-stream', content: serverSentEvents(events, true) };
  },

  /** The fields that name a tool in a call. */
  named(body, tool) {
    for (const { type, name: namespace, tools } of body.tools) {
      const inner = type === 'namespace' && tools.find(({ name }) => `${namespace}__${name}` === tool);
      if (inner) {
        return { namespace, name: inner.name };
      }
    }
    return { name: tool };
  },
};

/** OpenAI chat completions, as opencode speaks it. */
const chat = {
  accepts: (path) => path === '/v1/chat/completions',

  toolNames: (body) => (body.tools ?? []).map(({ function: { name } }) => name),

  /** Chat has no images in tool results: a client sends them in the user message that follows. */
  results(body) {
    const results = [];
    for (const { role, tool_call_id: id, content } of body.messages) {
      if (role === 'tool') {
        results.push({ id, parts: chat.parts(content) });
      } else if (role === 'user' && Array.isArray(content)) {
        results.at(-1)?.parts.push(...chat.parts(content).filter(({ type }) => type === 'image'));
      }
    }
    return results;
  },

  parts(content) {
    if (typeof content === 'string') {
      return [text(content)];
    }
    return content.map((part) =>
      part.type === 'image_url' ? imageFromUrl(part.image_url.url) : text(part.text ?? JSON.stringify(part)),
    );
  },

  reply(body, { call, answer }) {
    const message =
      call === undefined
        ? { role: 'assistant', content: answer }
        : {
            role: 'assistant',
            content: null,
            tool_calls: [
              {
                index: 0,
                id: call.id,
                type: 'function',
                function: { name: call.tool, arguments: JSON.stringify(call.arguments) },
              },
            ],
          };
    const common = { id: `chatcmpl-${Date.now()}`, created: 1, model: body.model };
    const usage = { prompt_tokens: 10, completion_tokens: 10, total_tokens: 20 };
    const reason = call === undefined ? 'stop' : 'tool_calls';
    if (!body.stream) {
      const whole = {
        ...common,
        object: 'chat.completion',
        choices: [{ index: 0, message, finish_reason: reason }],
        usage,
      };
      return { type: 'application/json', content: JSON.stringify(whole) };
    }
    const chunk = (delta, finish_reason) => ({
      ...common,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta, finish_reason }],
    });
    const events = [chunk(message, null), { ...chunk({}, reason), usage }, '[DONE]'];
    return { type: 'text/event-stream', content: serverSentEvents(events, false) };
  },
};

/** Gemini generateContent, as Gemini CLI speaks it. */
const gemini = {
  accepts: (path) => /:(streamGenerateContent|generateContent)$/.test(path),

  toolNames: (body) =>
    (body.tools ?? []).flatMap(({ functionDeclarations }) => (functionDeclarations ?? []).map(({ name }) => name)),

  results(body) {
    const results = [];
    for (const { functionResponse, inlineData } of body.contents.flatMap(({ parts }) => parts ?? [])) {
      if (functionResponse !== undefined) {
        results.push({ id: functionResponse.id, parts: gemini.parts(functionResponse) });
      } else if (inlineData !== undefined) {
        results.at(-1)?.parts.push(image(inlineData.mimeType, inlineData.data));
      }
    }
    return results;
  },

  parts({ response, parts = [] }) {
    const { output, ...rest } = response;
    const more = Object.keys(rest).length === 0 ? '' : JSON.stringify(rest);
    const images = parts
      .filter(({ inlineData }) => inlineData !== undefined)
      .map(({ inlineData }) => image(inlineData.mimeType, inlineData.data));
    return [text((output ?? '') + more), ...images];
  },

  reply(body, { call, answer }, path) {
    const part =
      call === undefined ? { text: answer } : { functionCall: { id: call.id, name: call.tool, args: call.arguments } };
    const content = {
      candidates: [{ index: 0, content: { role: 'model', parts: [part] }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 10, totalTokenCount: 20 },
    };
    return path.includes('streamGenerateContent')
      ? { type: 'text/event-stream', content: serverSentEvents([content], false) }
      : { type: 'application/json', content: JSON.stringify(content) };
  },
};

export const modelApis = [anthropic, responses, chat, gemini];
