/**
 * A folder in Hugging Face's layout as a checkpoint: config.json, safetensors in one file or many,
 * and, where they are there, tokenizer.json, tokenizer_config.json, generation_config.json and
 * chat_template.jinja.
 */
import type { TokenizerJsonData } from '../text/tokenizer-data.js';
import { bindTensors, totalBytesOf, type Checkpoint } from './checkpoint.js';
import { displayedConfig, hfConfig, hfStopIds } from './hf-config.js';
import { isObject, JsonFields, own, readJson, type JsonObject } from './json.js';
import { invalid } from './file-errors.js';
import { readSafetensors } from './safetensors.js';
import { baseName, openRequired, type ByteSource, type OpenByName } from './source.js';
import { checkTensorTable, type FileTensor } from './tensor-table.js';

/** The usual names of the weights, in the order in which they are looked for. */
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
  const { architecture, config } = hfConfig(fields);
  const tensors = baseName(weights.name).endsWith('.json')
    ? await shardedTensors(weights, open, signal)
    : (await readSafetensors(weights, signal)).tensors;
  const bound = bindTensors(weights.name, config, tensors, canonicalName);

  const optional = async (name: string): Promise<JsonFieldsAndObject | undefined> => {
    const source = await open(name);
    if (source === undefined) return undefined;
    const object = await readJson(source, signal);
    return { object, fields: new JsonFields(source.name, object) };
  };
  const tokenizerJson = await optional('tokenizer.json');
  const tokenizerConfig = await optional('tokenizer_config.json');
  const generation = await optional('generation_config.json');
  const stopIds = new Set(hfStopIds(fields, config.vocabSize));
  if (generation) hfStopIds(generation.fields, config.vocabSize).forEach((id) => stopIds.add(id));
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
    for (const tensor of (await readSafetensors(await openRequired(open, shard), signal)).tensors) {
      const place = own(weightMap, tensor.name);
      if (place !== shard) {
        throw invalid(file, `weight_map of ${tensor.name}`, place, `${shard}, which has it`);
      }
      tensors.push(tensor);
    }
  }
  const found = new Set(tensors.map((tensor) => tensor.name));
  for (const [name, shard] of Object.entries(weightMap)) {
    if (!found.has(name)) {
      throw invalid(file, `weight_map of ${name}`, shard, 'a file that has the tensor');
    }
  }
  checkTensorTable(tensors);
  return tensors;
}

/** A string, or a list of named ones of which `default` is meant. */
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

function canonicalName(name: string): string | undefined {
  const layer = /^model\.layers\.(0|[1-9]\d*)\.(.+)$/.exec(name);
  if (layer === null) return own(globalNames, name);
  const [, index, rest = ''] = layer;
  const known = own(layerNames, rest);
  return known && `layers.${index}.${known}`;
}
