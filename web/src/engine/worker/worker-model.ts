/** A model in the worker, with the tokenizer and chat template of its checkpoint. */
import * as check from '../../core/arguments.js';
import type { Core, Model } from '../../core-api.js';
import type { ChatMessage, EngineModel, EngineModelInfo, TokenizerInfo } from '../../engine-api.js';
import { KvLensError } from '../../errors.js';
import { opfsStore } from '../../files/blob-stores.js';
import { DownloadCache } from '../../files/download-cache.js';
import { openCheckpoint } from '../../files/open-checkpoint.js';
import { baseName } from '../../files/source.js';
import { ChatTemplate } from '../../text/chat.js';
import { createTokenizer, type Tokenizer } from '../../text/tokenizer.js';
import type { DType, TokenIds } from '../../types.js';
import type { Call } from './call.js';
import { callNamed, includes } from './call-named.js';
import { loadWeights } from './load-weights.js';
import { CORE_MODEL_METHODS, MODEL_METHODS, type Served } from '../protocol/methods.js';
import type { PortableSource } from '../protocol/portable-source.js';
import { openSource } from './open-source.js';

export class WorkerModel implements Served<EngineModel, (typeof MODEL_METHODS)[number]> {
  readonly model: Model;
  readonly info: EngineModelInfo;
  readonly tokenizer: Tokenizer | undefined;
  readonly #chatTemplate: string | undefined;

  constructor(
    model: Model,
    from: Pick<EngineModelInfo, 'name' | 'format' | 'architecture' | 'loadMilliseconds'>,
    tokenizer?: Tokenizer,
    chatTemplate?: string,
  ) {
    this.model = model;
    this.tokenizer = tokenizer;
    this.#chatTemplate = chatTemplate;
    const counts = new Map<DType, number>();
    let nParameters = 0;
    for (const { dtype, shape } of model.parameters()) {
      if (shape.length === 2) counts.set(dtype, (counts.get(dtype) ?? 0) + 1);
      nParameters += shape.reduce((product, size) => product * size, 1);
    }
    this.info = {
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
    const tokenizer = checkpoint.tokenizer && createTokenizer(checkpoint.tokenizer);
    const model = await loadWeights(core, checkpoint, signal, onProgress);
    const { format, architecture, totalBytes, chatTemplate } = checkpoint;
    onProgress?.({ stage: 'ready', bytes: totalBytes, total: totalBytes });
    const name = checkpoint.name || fileName(source) || architecture;
    const loadMilliseconds = performance.now() - start;
    return new WorkerModel(
      model,
      { name, format, architecture, loadMilliseconds },
      tokenizer,
      chatTemplate,
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
    throw new KvLensError(
      'no_tokenizer',
      {},
      'the model came without a tokenizer; give it tokens instead of text',
    );
  }

  serve(method: string, call: Call, args: readonly unknown[]): unknown {
    if (includes(CORE_MODEL_METHODS, method)) return callNamed(this.model, method, args);
    return callNamed(this, method, [call, ...args]);
  }

  tokenize(
    _call: Call,
    text: string,
    { addSpecial = true }: { readonly addSpecial?: boolean } = {},
  ): Uint32Array<ArrayBuffer> {
    return this.encode(text, addSpecial);
  }

  /** Ids of `text`. Errors: no_tokenizer, invalid_argument. */
  encode(text: string, addSpecial: boolean): Uint32Array<ArrayBuffer> {
    const tokenizer = this.needTokenizer();
    check.string('text', text);
    const options = addSpecial ? {} : { addBos: false, addEos: false };
    return tokenizer.encode(text, options) as Uint32Array<ArrayBuffer>;
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
    { addGenerationPrompt = true }: { readonly addGenerationPrompt?: boolean } = {},
  ): string {
    return this.renderChat(messages, addGenerationPrompt);
  }

  /** Errors: no_tokenizer, no_chat_template, chat_template_failed. */
  renderChat(messages: readonly ChatMessage[], addGenerationPrompt: boolean): string {
    const tokenizer = this.needTokenizer();
    const text = (id: number | undefined): string =>
      id === undefined ? '' : tokenizer.piece(id).text;
    const bosToken = text(tokenizer.bosId);
    const eosToken = text(tokenizer.eosId);
    return new ChatTemplate(this.#chatTemplate).render(
      messages.map((message) => ({ ...message })),
      { addGenerationPrompt, bosToken, eosToken },
    );
  }

  dispose(): void {
    this.model.dispose();
  }
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
