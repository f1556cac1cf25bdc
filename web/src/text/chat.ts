/**
 * A checkpoint's own chat template: from messages to the text that the model was trained on.
 */
import { Template } from '@huggingface/jinja';
import { KvLensError } from '../errors.js';

/** One message of a conversation; templates may use further fields. */
export interface ChatMessage {
  readonly role: string;
  readonly content: string;
  readonly [field: string]: unknown;
}

/** What a template may use beside the messages. */
export interface ChatOptions {
  /** Whether the text ends with the beginning of an answer (default true). */
  readonly addGenerationPrompt?: boolean;
  /** Text of BOS and EOS, for templates that write them. */
  readonly bosToken?: string;
  readonly eosToken?: string;
  /** Further variables, for example `enable_thinking`. */
  readonly variables?: Readonly<Record<string, unknown>>;
}

/** A parsed chat template. */
export class ChatTemplate {
  private readonly template: Template;

  /** Errors: no_chat_template (`source` is undefined), chat_template_failed (not to be parsed). */
  constructor(source: string | undefined) {
    if (source === undefined) {
      const message = 'the checkpoint has no chat template; give it a prompt instead of messages';
      throw new KvLensError('no_chat_template', {}, message);
    }
    this.template = attempt('cannot be parsed', () => new Template(source));
  }

  /**
   * The text of a conversation. Encode it with `addBos: false`: a template writes BOS itself.
   * Errors: chat_template_failed, with what the template says against the messages.
   */
  render(messages: readonly ChatMessage[], options: ChatOptions = {}): string {
    return attempt('refused the messages', () =>
      this.template.render({
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
