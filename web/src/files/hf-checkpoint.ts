/**
 * A folder in Hugging Face's layout as a checkpoint: config.json, safetensors in one file or many,
 * and, if they exist, tokenizer.json, tokenizer_config.json, generation_config.json and
 * chat_template.jinja.
 */
import type { TokenizerJsonData } from '../text/tokenizer-data.js';
import type { Config } from '../types.js';
import { bindTensors, totalBytesOf, Warnings, type Checkpoint } from './checkpoint.js';
import { displayedConfig, hfConfig, hfStopIds } from './hf-config.js';
import { isObject, JsonFields, own, readJson, type JsonObject } from './json.js';
import { invalid } from './file-errors.js';
import { readSafetensors } from './safetensors.js';
import { baseName, openRequired, type ByteSource, type OpenByName } from './source.js';
import { checkTensorTable, type FileTensor } from './tensor-table.js';

/** The usual names of the weights, in the order in which they are tried. */
export const safetensorsName = 'model.safetensors';
export const safetensorsIndexName = 'model.safetensors.index.json';

/**
 * Describes the model in a folder. `weights` is the safetensors file or the index of a sharded one.
 * Errors: invalid_file, unsupported_file, truncated_file, missing_file and those of the sources.
 */
export async function hfCheckpoint(
  weights: ByteSource,
  open: OpenByName,
  signal?: AbortSignal,
): Promise<Checkpoint> {
  const configSource = await openRequired(open, 'config.json');
  const json = await readJson(configSource, signal);
  const fields = new JsonFields(configSource.name, json);
  const warnings = new Warnings();
  const described = hfConfig(fields);
  const { architecture } = described;
  const stored = baseName(weights.name).endsWith('.json')
    ? await shardedTensors(weights, open, signal)
    : (await readSafetensors(weights, isBuffer, signal)).tensors;
  const { config, tensors } = await untangleHead(described.config, stored, warnings, signal);
  const bound = bindTensors(weights.name, config, tensors, namesOf(tensors));

  const optional = async (name: string): Promise<JsonFieldsAndObject | undefined> => {
    const source = await open(name);
    if (source === undefined) return undefined;
    const object = await readJson(source, signal);
    return { object, fields: new JsonFields(source.name, object) };
  };
  const tokenizerJson = await optional('tokenizer.json');
  const tokenizerConfig = await optional('tokenizer_config.json');
  const generation = await optional('generation_config.json');
  const stopIds = new Set(hfStopIds(fields, config.vocabSize, warnings));
  if (generation) {
    hfStopIds(generation.fields, config.vocabSize, warnings).forEach((id) => stopIds.add(id));
  }
  const tokenizer: TokenizerJsonData | undefined = tokenizerJson && {
    kind: 'tokenizer.json',
    json: tokenizerJson.object,
    config: tokenizerConfig?.object ?? {},
    stopIds: [...stopIds],
  };
  const templateFile = await open('chat_template.jinja');
  return {
    format: 'safetensors',
    architecture,
    name: fields.string('_name_or_path') || undefined,
    config,
    tensors: bound,
    totalBytes: totalBytesOf(bound),
    tokenizer,
    tokenizerProblem: undefined,
    warnings: warnings.list,
    chatTemplate: templateFile
      ? new TextDecoder().decode(await templateFile.read(0, templateFile.size, signal))
      : tokenizerConfig && chatTemplateOf(tokenizerConfig.fields),
    metadata: displayedConfig(json),
  };
}

interface JsonFieldsAndObject {
  readonly object: JsonObject;
  readonly fields: JsonFields;
}

async function shardedTensors(
  index: ByteSource,
  open: OpenByName,
  signal: AbortSignal | undefined,
): Promise<FileTensor[]> {
  const file = index.name;
  const weightMap = (await readJson(index, signal))['weight_map'];
  if (!isObject(weightMap)) throw invalid(file, 'weight_map', weightMap, 'an object');
  const shards = new Set<string>();
  for (const [tensor, shard] of Object.entries(weightMap)) {
    // A name with a path could reach outside the folder.
    if (typeof shard !== 'string' || !/^[^/\\]+\.safetensors$/.test(shard)) {
      const allowed = 'a .safetensors file of the same folder';
      throw invalid(file, `weight_map of ${tensor}`, shard, allowed);
    }
    shards.add(shard);
  }
  const tensors: FileTensor[] = [];
  for (const shard of shards) {
    const source = await openRequired(open, shard);
    for (const tensor of (await readSafetensors(source, isBuffer, signal)).tensors) {
      const place = own(weightMap, tensor.name);
      if (place !== shard) {
        throw invalid(file, `weight_map of ${tensor.name}`, place, `${shard}, which has it`);
      }
      tensors.push(tensor);
    }
  }
  const found = new Set(tensors.map((tensor) => tensor.name));
  for (const [name, shard] of Object.entries(weightMap)) {
    if (!found.has(name) && !isBuffer(name)) {
      throw invalid(file, `weight_map of ${name}`, shard, 'a file that has the tensor');
    }
  }
  checkTensorTable(tensors);
  return tensors;
}

/** The chat template: a string, or the entry `default` of a list. */
function chatTemplateOf(fields: JsonFields): string | undefined {
  const value = fields.raw('chat_template');
  if (!Array.isArray(value)) return fields.string('chat_template');
  for (const entry of value as unknown[]) {
    if (isObject(entry) && entry['name'] === 'default' && typeof entry['template'] === 'string') {
      return entry['template'];
    }
  }
  return undefined;
}

/**
 * Old exports hold buffers that the code computes, such as the frequencies of RoPE. They are no
 * weights, and may have any type.
 */
function isBuffer(name: string): boolean {
  return /(?:^|\.)(?:inv_freq|cos_cached|sin_cached|masked_bias|position_ids|attn\.bias)$/.test(
    name,
  );
}

const embeddingName = /^(?:model\.)?embed_tokens\.weight$/;
const headName = 'lm_head.weight';

/**
 * A checkpoint whose embedding is tied may hold the head all the same. If it equals the embedding,
 * it is left out; if it differs, it is used, and the embedding is not tied. A head without an
 * embedding is both.
 */
async function untangleHead(
  config: Config,
  tensors: readonly FileTensor[],
  warnings: Warnings,
  signal: AbortSignal | undefined,
): Promise<{ config: Config; tensors: readonly FileTensor[] }> {
  const head = tensors.find((tensor) => tensor.name === headName);
  if (!config.tiedEmbedding || head === undefined) return { config, tensors };
  const embedding = tensors.find((tensor) => embeddingName.test(tensor.name));
  if (embedding === undefined) {
    const prefix = hasModelPrefix(tensors) ? 'model.' : '';
    const renamed = { ...head, name: `${prefix}embed_tokens.weight` };
    return { config, tensors: tensors.map((tensor) => (tensor === head ? renamed : tensor)) };
  }
  if (await haveSameBytes(head, embedding, signal)) {
    return { config, tensors: tensors.filter((tensor) => tensor !== head) };
  }
  const consequence = 'it differs from the embedding, so it is used, and the embedding is not tied';
  warnings.add(head.source.name, 'tensor', headName, consequence);
  return { config: { ...config, tiedEmbedding: false }, tensors };
}

async function haveSameBytes(
  a: FileTensor,
  b: FileTensor,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  if (a.dtype !== b.dtype || a.byteLength !== b.byteLength) return false;
  const pieceBytes = 4 << 20;
  for (let at = 0; at < a.byteLength; at += pieceBytes) {
    const length = Math.min(pieceBytes, a.byteLength - at);
    // A copy: the second read may reuse the memory of the first.
    const first = (await a.source.read(a.byteOffset + at, length, signal)).slice();
    const second = await b.source.read(b.byteOffset + at, length, signal);
    if (!first.every((byte, i) => byte === second[i])) return false;
  }
  return true;
}

/** Checkpoints of the model without its head have names without `model.`. */
function hasModelPrefix(tensors: readonly FileTensor[]): boolean {
  return tensors.some((tensor) => tensor.name.startsWith('model.'));
}

const globalNames: Readonly<Record<string, string>> = {
  'model.embed_tokens.weight': 'token_embedding',
  'model.norm.weight': 'final_norm',
  'lm_head.weight': 'lm_head',
};
const layerNames: Readonly<Record<string, string>> = {
  'input_layernorm.weight': 'attention_norm',
  'self_attn.q_proj.weight': 'q_proj',
  'self_attn.q_proj.bias': 'q_bias',
  'self_attn.k_proj.weight': 'k_proj',
  'self_attn.k_proj.bias': 'k_bias',
  'self_attn.v_proj.weight': 'v_proj',
  'self_attn.v_proj.bias': 'v_bias',
  'self_attn.q_norm.weight': 'q_norm',
  'self_attn.k_norm.weight': 'k_norm',
  'self_attn.o_proj.weight': 'o_proj',
  'post_attention_layernorm.weight': 'ffn_norm',
  'mlp.gate_proj.weight': 'gate_proj',
  'mlp.up_proj.weight': 'up_proj',
  'mlp.down_proj.weight': 'down_proj',
};

/** From a tensor's name to the core's name, or undefined for a name that no such model has. */
function namesOf(tensors: readonly FileTensor[]): (name: string) => string | undefined {
  const hasPrefix = hasModelPrefix(tensors);
  return (name) => {
    const inModel = hasPrefix || name === headName ? name : `model.${name}`;
    const layer = /^model\.layers\.(0|[1-9]\d*)\.(.+)$/.exec(inModel);
    if (layer === null) return own(globalNames, inModel);
    const [, index, rest = ''] = layer;
    const known = own(layerNames, rest);
    return known && `layers.${index}.${known}`;
  };
}
