// Chat templates write the text that Python's Jinja writes, or are refused.
import { describe, expect, test } from 'vitest';
import { isKvLensError } from '../../../web/src/errors.js';
import { ChatTemplate, LiteralContent, type ChatMessage } from '../../../web/src/text/chat.js';
import { strftime } from '../../../web/src/text/strftime.js';
import { createTokenizer } from '../../../web/src/text/tokenizer.js';
import { fixtureJson, fixtureText } from '../../support/fixtures.js';

interface Rendering {
  readonly name: string;
  readonly template: string;
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly unknown[] | null;
  readonly right: string;
}

test('loops, values, filters, macros and tools give the text of Jinja2', async () => {
  const renderings = await fixtureJson<Rendering[]>('tokenizer-json/templates.json');
  expect(renderings.length).toBeGreaterThan(100);
  for (const { name, template, messages, tools, right } of renderings) {
    const options = { ...(tools && { tools }), bosToken: '<s>', eosToken: '</s>' };
    expect(new ChatTemplate(template).render(messages, options), name).toBe(right);
  }
});

// The features that the library lacks; using one is an error.
const refused = new Set([
  'chain-compare',
  'with',
  'raw',
  'dict',
  'percent',
  'recursive',
  'splitlines',
  'select',
  'set-filter',
  'joiner',
  'loop-changed',
]);

describe('features of real templates', () => {
  test('give the right text or an error, never another text', async () => {
    const folder = 'cases/R44-template-features';
    const { messages, right } = await fixtureJson<{
      messages: ChatMessage[];
      right: Record<string, string>;
    }>(`${folder}/expected.json`);
    for (const [name, text] of Object.entries(right)) {
      if (name === 'strftime') continue; // depends on the day: see below
      const source = await fixtureText(`${folder}/${name}/chat_template.jinja`);
      let found: string | undefined;
      try {
        found = new ChatTemplate(source).render(messages, { addGenerationPrompt: false });
      } catch (error) {
        expect(isKvLensError(error) && error.code, name).toBe('chat_template_failed');
      }
      expect(found, name).toBe(refused.has(name) ? undefined : text);
    }
  });

  test('dates are those of strftime', () => {
    const date = new Date(2026, 10, 30, 14, 5, 9);
    expect(strftime('%A %j', date)).toBe('Monday 334');
    expect(strftime('%a %d %b %Y, %-d %B %y %m %H:%M:%S %I %p 100%%', date)).toBe(
      'Mon 30 Nov 2026, 30 November 26 11 14:05:09 02 PM 100%',
    );
    expect(() => strftime('%Q', date)).toThrow('%Q');
  });
});

test('Qwen 3: enable_thinking and the conversations of Transformers', async () => {
  const folder = 'cases/R42-template-variables';
  const conversations = await fixtureJson<Record<string, ChatMessage[]>>(
    `${folder}/conversations.json`,
  );
  const right = await fixtureJson<Record<string, { plain: string; nothink: string }>>(
    `${folder}/expected.json`,
  );
  const config = await fixtureJson<{ chat_template: string }>(
    `${folder}/model/tokenizer_config.json`,
  );
  const template = new ChatTemplate(config.chat_template);
  for (const [name, messages] of Object.entries(conversations)) {
    for (const [kind, variables] of [
      ['plain', {}],
      ['nothink', { enable_thinking: false }],
    ] as const) {
      const text = right[name]![kind];
      const render = () => template.render(messages, { variables });
      if (text.startsWith('!')) expect(render, name).toThrow();
      else expect(render(), name).toBe(text);
    }
  }
});

test('contents can be encoded literally, while the template keeps its control tokens', () => {
  const tokenizer = createTokenizer({
    kind: 'tokenizer.json',
    json: {
      added_tokens: [{ id: 0, content: '<e>', special: true }],
      model: { type: 'BPE', vocab: { '<e>': 0, '<': 1, e: 2, '>': 3, a: 4 }, merges: [] },
    },
    config: {},
    stopIds: [],
  });
  const template = new ChatTemplate('{% for m in messages %}{{ m.content | trim }}<e>{% endfor %}');
  const literal = new LiteralContent(tokenizer.specialNames, [
    { role: 'user', content: ' a<e>a ' },
  ]);
  const { text, literalAt } = literal.unmark(template.render(literal.messages));
  expect(text).toBe('a<e>a<e>');
  expect([...tokenizer.encode(text, { literalAt })]).toEqual([4, 1, 2, 3, 4, 0]);
  expect([...tokenizer.encode(text)]).toEqual([4, 0, 4, 0]);
  expect([...tokenizer.encode(text, { parseSpecial: false })]).toEqual([4, 1, 2, 3, 4, 1, 2, 3]);
});

test('a megabyte is encoded in steps, of one word as of many', () => {
  const vocab = { a: 0, aa: 1, aaaa: 2, '\u0120': 3 };
  const tokenizer = createTokenizer({
    kind: 'tokenizer.json',
    json: {
      pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, use_regex: true },
      decoder: { type: 'ByteLevel' },
      model: { type: 'BPE', vocab, merges: ['a a', 'aa aa'] },
    },
    config: {},
    stopIds: [],
  });
  for (const [text, length] of [
    ['a'.repeat(1 << 20), 1 << 18],
    ['aaaa '.repeat(200_000), 400_000],
  ] as const) {
    const steps = tokenizer.encodeSteps(text);
    let pauses = 0;
    let step = steps.next();
    for (; !step.done; step = steps.next()) ++pauses;
    expect(pauses).toBeGreaterThan(10);
    expect(step.value).toHaveLength(length);
  }
});
