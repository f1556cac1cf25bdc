/**
 * A checkpoint's own chat template: from messages to the text that the model was trained on.
 */
import { KvLensError } from '../errors.js';
import { parseTemplate } from './chat-interpreter.js';

/** One message of a conversation. Templates may use further fields. */
export interface ChatMessage {
  readonly role: string;
  readonly content: string;
  readonly [field: string]: unknown;
}

/** What a template may use beside the messages. */
export interface ChatOptions {
  /** Whether the text ends with the beginning of an answer (default true). */
  readonly addGenerationPrompt?: boolean;
  /** The names of BOS and EOS, for templates that write them. */
  readonly bosToken?: string;
  readonly eosToken?: string;
  /** Descriptions of tools and documents; `none` in the template by default, as in Python. */
  readonly tools?: readonly unknown[];
  readonly documents?: readonly unknown[];
  /** Further variables, for example `enable_thinking`. */
  readonly variables?: Readonly<Record<string, unknown>>;
}

/** A parsed chat template. */
export class ChatTemplate {
  private readonly run: (variables: Record<string, unknown>) => string;

  /** Errors: no_chat_template (`source` is undefined), chat_template_failed (it does not parse). */
  constructor(source: string | undefined) {
    if (source === undefined) {
      const message = 'the checkpoint has no chat template; give it a prompt instead of messages';
      throw new KvLensError('no_chat_template', {}, message);
    }
    this.run = attempt('cannot be parsed', () => parseTemplate(source));
  }

  /**
   * The text of a conversation. Encode it with `addBos: false`: the template itself writes BOS.
   * Errors: chat_template_failed, with the template's objection to the messages.
   */
  render(messages: readonly ChatMessage[], options: ChatOptions = {}): string {
    return attempt('refused the messages', () =>
      this.run({
        tools: options.tools ?? null,
        documents: options.documents ?? null,
        ...options.variables,
        messages: messages.map((message) => ({ ...message })),
        add_generation_prompt: options.addGenerationPrompt ?? true,
        bos_token: options.bosToken ?? '',
        eos_token: options.eosToken ?? '',
      }),
    );
  }
}

function attempt<T>(what: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const message = `the chat template ${what}: ${reason}`;
    throw new KvLensError('chat_template_failed', {}, message, error);
  }
}

/**
 * Marks the names of control tokens in the contents of messages, to tell them from those that the
 * template writes. A mark is a private character within the name.
 */
export class LiteralContent {
  /** The messages with marks. */
  readonly messages: readonly ChatMessage[];
  private readonly mark: string;

  constructor(names: readonly string[], messages: readonly ChatMessage[]) {
    const contents = messages.map(({ content }) => (typeof content === 'string' ? content : ''));
    let point = 0x10fffd;
    while (contents.some((content) => content.includes(String.fromCodePoint(point)))) --point;
    this.mark = String.fromCodePoint(point);
    const present = names
      .filter((name) => name.length > 1 && contents.some((content) => content.includes(name)))
      .sort((a, b) => b.length - a.length);
    this.messages = messages.map((message) => {
      let { content } = message;
      if (typeof content !== 'string') return message;
      for (const name of present) {
        content = content.replaceAll(name, () => name.charAt(0) + this.mark + name.slice(1));
      }
      return { ...message, content };
    });
  }

  /** A rendered text without its marks, and where they were. */
  unmark(text: string): { text: string; literalAt: number[] } {
    const parts = text.split(this.mark);
    const literalAt: number[] = [];
    let at = 0;
    for (const part of parts.slice(0, -1)) literalAt.push((at += part.length));
    return { text: parts.join(''), literalAt };
  }
}
