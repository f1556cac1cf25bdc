/** A model in the worker, with the tokenizer and chat template of its checkpoint. */
import * as check from '../../core/arguments.js';
import type { Core, Model } from '../../core-api.js';
import type {
  ChatMessage,
  ChatTemplateOptions,
  EngineModel,
  EngineModelInfo,
  TokenizeOptions,
  TokenizerInfo,
} from '../../engine-api.js';
import { KvLensError } from '../../errors.js';
import { opfsStore } from '../../files/blob-stores.js';
import { DownloadCache } from '../../files/download-cache.js';
import { tokenizerOrProblem, Warnings } from '../../files/checkpoint.js';
import { openCheckpoint } from '../../files/open-checkpoint.js';
import { baseName } from '../../files/source.js';
import { ChatTemplate, LiteralContent } from '../../text/chat.js';
import { createTokenizer, type EncodeOptions, type Tokenizer } from '../../text/tokenizer.js';
import type { DType, TokenIds } from '../../types.js';
import { aborted, type Call } from './call.js';
import { callNamed, includes } from './call-named.js';
import { loadWeights } from './load-weights.js';
import { CORE_MODEL_METHODS, MODEL_METHODS, type Served } from '../protocol/methods.js';
import type { PortableSource } from '../protocol/portable-source.js';
import { openSource } from './open-source.js';
import { yieldToMessages } from './yield-to-messages.js';

export class WorkerModel implements Served<EngineModel, (typeof MODEL_METHODS)[number]> {
  readonly model: Model;
  readonly info: EngineModelInfo;
  readonly tokenizer: Tokenizer | undefined;
  readonly #tokenizerProblem: KvLensError | undefined;
  readonly #chatTemplate: string | undefined;

  constructor(
    model: Model,
    from: Pick<EngineModelInfo, 'name' | 'format' | 'architecture' | 'loadMilliseconds'> &
      Partial<Pick<EngineModelInfo, 'warnings'>>,
    tokenizer?: Tokenizer,
    chatTemplate?: string,
    tokenizerProblem?: KvLensError,
  ) {
    this.model = model;
    this.tokenizer = tokenizer;
    this.#chatTemplate = chatTemplate;
    this.#tokenizerProblem = tokenizerProblem;
    const counts = new Map<DType, number>();
    let nParameters = 0;
    for (const { dtype, shape } of model.parameters()) {
      if (shape.length === 2) counts.set(dtype, (counts.get(dtype) ?? 0) + 1);
      nParameters += shape.reduce((product, size) => product * size, 1);
    }
    this.info = {
      warnings: [],
      ...from,
      hash: model.hash,
      parameterBytes: model.parameterBytes,
      nParameters,
      dtypes: [...counts].sort((a, b) => b[1] - a[1]),
    };
  }

  /** Errors: those of files, tokenizers and parameters. Nothing stays in memory then. */
  static async load(
    core: Core,
    source: PortableSource,
    cache: boolean,
    { signal, onLoadProgress: onProgress }: Call,
  ): Promise<WorkerModel> {
    const start = performance.now();
    onProgress?.({ stage: 'open', bytes: 0, total: 0 });
    const checkpoint = await openCheckpoint(await openSource(source, signal), {
      signal,
      ...(cache && { cache: new DownloadCache(await opfsStore()) }),
      onProgress: ({ stage, bytes, total }) => {
        if (stage === 'download') onProgress?.({ stage: 'open', bytes, total });
      },
    });
    const { config, tokenizer: data } = checkpoint;
    const found = new Warnings();
    const { tokenizer, tokenizerProblem } = await tokenizerOrProblem(
      data?.kind ?? '',
      found,
      () => data && createTokenizer(data, config.vocabSize),
    );
    const model = await loadWeights(core, checkpoint, signal, onProgress);
    const { format, architecture, totalBytes, chatTemplate } = checkpoint;
    onProgress?.({ stage: 'ready', bytes: totalBytes, total: totalBytes });
    const name = checkpoint.name || fileName(source) || architecture;
    const loadMilliseconds = performance.now() - start;
    return new WorkerModel(
      model,
      {
        name,
        format,
        architecture,
        loadMilliseconds,
        warnings: [...checkpoint.warnings, ...found.list],
      },
      tokenizer,
      chatTemplate,
      checkpoint.tokenizerProblem ?? tokenizerProblem,
    );
  }

  get tokenizerInfo(): TokenizerInfo | undefined {
    const { tokenizer } = this;
    return (
      tokenizer && {
        vocabSize: tokenizer.vocabSize,
        bosToken: tokenizer.bosId,
        eosTokens: tokenizer.stopIds,
        hasChatTemplate: this.#chatTemplate !== undefined,
      }
    );
  }

  /** Errors: no_tokenizer. */
  needTokenizer(): Tokenizer {
    if (this.tokenizer !== undefined) return this.tokenizer;
    const problem = this.#tokenizerProblem;
    const reason =
      problem === undefined
        ? 'the model came without a tokenizer'
        : `kvlens does not support the tokenizer of the model (${problem.message})`;
    throw new KvLensError('no_tokenizer', {}, `${reason}; give it tokens instead of text`, problem);
  }

  serve(method: string, call: Call, args: readonly unknown[]): unknown {
    if (includes(CORE_MODEL_METHODS, method)) return callNamed(this.model, method, args);
    return callNamed(this, method, [call, ...args]);
  }

  tokenize(
    call: Call,
    text: string,
    options: TokenizeOptions = {},
  ): Promise<Uint32Array<ArrayBuffer>> {
    return this.encode(text, encodeOptions(options), call.signal);
  }

  /**
   * Resolves to the ids of `text`. Pauses between steps, so that other calls are answered.
   * Errors: no_tokenizer, invalid_argument, aborted.
   */
  async encode(
    text: string,
    options: EncodeOptions,
    signal: AbortSignal,
  ): Promise<Uint32Array<ArrayBuffer>> {
    const tokenizer = this.needTokenizer();
    check.string('text', text);
    const steps = tokenizer.encodeSteps(text, options);
    for (;;) {
      const { done, value } = steps.next();
      if (done) return value;
      await yieldToMessages();
      if (signal.aborted) throw aborted(signal);
    }
  }

  detokenize(_call: Call, tokens: TokenIds): string {
    return this.needTokenizer().decode(check.counts('tokens', tokens));
  }

  pieces(_call: Call, tokens: TokenIds): string[] {
    const tokenizer = this.needTokenizer();
    return Array.from(check.counts('tokens', tokens), (token) => tokenizer.piece(token).text);
  }

  applyChatTemplate(
    _call: Call,
    messages: readonly ChatMessage[],
    options: ChatTemplateOptions = {},
  ): string {
    return this.renderChat(messages, options);
  }

  /** Errors: no_tokenizer, no_chat_template, chat_template_failed. */
  renderChat(messages: readonly ChatMessage[], options: ChatTemplateOptions): string {
    const tokenizer = this.needTokenizer();
    const text = (id: number | undefined): string =>
      id === undefined ? '' : tokenizer.piece(id).text;
    return new ChatTemplate(this.#chatTemplate).render(messages, {
      ...options,
      bosToken: text(tokenizer.bosId),
      eosToken: text(tokenizer.eosId),
    });
  }

  /**
   * Resolves to the ids of a conversation, as its template writes it. With `literalContent` the
   * names of control tokens in the contents of messages are ordinary text.
   * Errors: those of renderChat and encode.
   */
  async encodeChat(
    messages: readonly ChatMessage[],
    options: ChatTemplateOptions,
    literalContent: boolean,
    signal: AbortSignal,
  ): Promise<Uint32Array<ArrayBuffer>> {
    // The template itself writes BOS.
    const bare = { addBos: false, addEos: false };
    if (!literalContent) return this.encode(this.renderChat(messages, options), bare, signal);
    const literal = new LiteralContent(this.needTokenizer().specialNames, messages);
    const { text, literalAt } = literal.unmark(this.renderChat(literal.messages, options));
    return this.encode(text, { ...bare, literalAt }, signal);
  }

  dispose(): void {
    this.model.dispose();
  }
}

/** The options of a tokenizer that those of a call mean. */
export function encodeOptions({ addSpecial, parseSpecial }: TokenizeOptions): EncodeOptions {
  return {
    ...(!check.flag('addSpecial', addSpecial ?? true) && { addBos: false, addEos: false }),
    parseSpecial: check.flag('parseSpecial', parseSpecial ?? true),
  };
}

/** The name of the file that holds the weights, if the source has one. */
function fileName(source: PortableSource): string | undefined {
  if (source.kind === 'many') {
    const names = source.files.map(([name]) => name);
    return names.map(baseName).find((name) => /\.(gguf|safetensors|bin)$/.test(name));
  }
  const { file } = source;
  if ('path' in file) return baseName(file.path);
  if ('url' in file) return baseName(file.url);
  return file instanceof Blob ? (file as Partial<File>).name : undefined;
}
