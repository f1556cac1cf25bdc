/**
 * How byte-level BPE tokenizers cut text into words before merging, by the names of GGUF's
 * `tokenizer.ggml.pre`.
 */

/** One way to cut text, and what goes with it in the families that use it. */
export interface PreTokenizer {
  /** Applied in turn, each to the parts that the one before has made. */
  readonly patterns: readonly string[];
  /** Whether a word that is a token is taken whole, without merging. */
  readonly ignoreMerges: boolean;
  /** Whether text is brought to Unicode's composed form first. */
  readonly composed: boolean;
  /** Whether a text begins with BOS where the file does not say. */
  readonly addBos: boolean;
}

const gpt2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
// Llama 3 and Qwen 2 differ only in how many digits make a word.
const modern = (digits: string) =>
  `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|${digits}` +
  '| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+';

const plain = { ignoreMerges: false, composed: false, addBos: false };
const llama3: PreTokenizer = {
  patterns: [modern('\\p{N}{1,3}')],
  ignoreMerges: true,
  composed: false,
  addBos: true,
};

const table: ReadonlyMap<string, PreTokenizer> = new Map<string, PreTokenizer>([
  ['gpt-2', { ...plain, patterns: [gpt2] }],
  ['smollm', { ...plain, patterns: ['\\p{N}', gpt2] }],
  ['qwen2', { ...plain, patterns: [modern('\\p{N}')], composed: true }],
  ['llama-bpe', llama3],
  ['llama3', llama3],
  ['llama-v3', llama3],
  [
    'default',
    {
      ...plain,
      patterns: ['[\\p{P}\\$\\+<=>\\^~\\|]+', gpt2, '\\p{N}+', '[0-9][0-9][0-9]'],
    },
  ],
]);

/** Undefined for a name that is not supported. */
export function preTokenizer(name: string): PreTokenizer | undefined {
  return table.get(name);
}

/** What messages say is supported. */
export const preTokenizerNames = [...table.keys()].join(', ');
