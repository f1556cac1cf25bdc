/**
 * How byte-level BPE tokenizers cut text into words before merging, by the names of GGUF's
 * `tokenizer.ggml.pre`. The patterns are those of the models' own tokenizer.json where it is known,
 * otherwise llama.cpp's.
 */
import { gpt2Pattern } from './pre-tokenizers.js';

/** One way to cut text, and the rules that go with it in the families that use it. */
export interface GgufPreTokenizer {
  /** Applied in turn, each to the parts that the one before has made. */
  readonly patterns: readonly string[];
  /** Whether a word that is a token is taken whole, without merging. */
  readonly ignoreMerges: boolean;
  /** Whether text is brought to Unicode's composed form first. */
  readonly composed: boolean;
  /** Whether a text begins with BOS if the file does not say. */
  readonly addBos: boolean;
}

const contractions = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const word = '[^\\r\\n\\p{L}\\p{N}]?\\p{L}+';
const symbols = ' ?[^\\s\\p{L}\\p{N}]+';
const spaces = '\\s+(?!\\S)|\\s+';

/** The pattern of Llama 3 and Qwen 2, which differ in how many digits make a word. */
const modern = (digits: string) =>
  `${contractions}|${word}|${digits}|${symbols}[\\r\\n]*|\\s*[\\r\\n]+|${spaces}`;

/** The pattern of GPT-4o and its relatives: words also end where small letters do. */
const cased = (contraction: string, digits: string) => {
  const upper = '[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]';
  const lower = '[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]';
  const start = '[^\\r\\n\\p{L}\\p{N}]?';
  return (
    `${start}${upper}*${lower}+${contraction}|${start}${upper}+${lower}*${contraction}|` +
    `${digits}|${symbols}[\\r\\n/]*|\\s*[\\r\\n]+|${spaces}`
  );
};

const asciiPunctuation = '[!"#$%&\'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~]';
const deepseekWords =
  `${asciiPunctuation}[A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|` +
  ` ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|${spaces}`;
const cjk = '[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+';
const bloom = ' ?[^(\\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+';
const punctuationRuns = '[\\p{P}\\$\\+<=>\\^~\\|]+';
// Letters with case, as DeepSeek LLM lists them.
const deepseekLetters =
  'A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙ' +
  'ὛὝὟ-ώᾀ-ᾴᾶ-ᾼιῂ-ῄῆ-ῌῐ-ΐῖ-Ίῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\u2126ℨ\u212a-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛ' +
  'Ꜣ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃';

const plain = { ignoreMerges: false, composed: false, addBos: false };
const of = (...patterns: string[]): GgufPreTokenizer => ({ ...plain, patterns });

const gpt2 = of(gpt2Pattern);
const digitsFirst = of('\\p{N}', gpt2Pattern);
const llama3: GgufPreTokenizer = {
  ...of(modern('\\p{N}{1,3}')),
  ignoreMerges: true,
  addBos: true,
};
const cl100k = of(modern('\\p{N}{1,3}'));
const singleDigits = of(modern('\\p{N}'));
const qwen2 = { ...singleDigits, composed: true };
const deepseek3 = of('\\p{N}{1,3}', cjk, deepseekWords);
const gpt4o = of(cased(`${contractions}?`, '\\p{N}{1,3}'));
const bailing = of(
  "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|" +
    `\\s*[\\r\\n]|${spaces}`,
);
const bloomWords = of(bloom);

const byNames: readonly (readonly [names: string, GgufPreTokenizer])[] = [
  ['llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano', llama3],
  ['gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert', gpt2],
  ['jais exaone4 trillion granite-docling', gpt2],
  ['mpt olmo', { ...gpt2, composed: true }],
  ['smollm starcoder refact command-r codeshell exaone minerva-7b mellum2', digitsFirst],
  ['qwen2 deepseek-r1-qwen megrez kormo f2llmv2', qwen2],
  ['stablelm2 hunyuan solar-open grok-2', singleDigits],
  ['dbrx smaug-bpe glm4 chatglm-bpe', cl100k],
  [
    'qwen35',
    {
      ...of(
        `${contractions}|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}|` +
          ` ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|${spaces}`,
      ),
      composed: true,
    },
  ],
  ['ufakzeka', of(`${word}|\\p{N}|${symbols}[\\r\\n]*|\\s*[\\r\\n]+|${spaces}`)],
  ['gpt-4o llama4 kanana2 talkie minimax-m2', gpt4o],
  ['granite-embed-multi-97m', { ...gpt4o, ignoreMerges: true }],
  ['tekken', { ...of(cased('', '\\p{N}')), ignoreMerges: true, addBos: true }],
  ['deepseek-v3 hunyuan-dense joyai-llm hy_v4', deepseek3],
  [
    'deepseek-llm',
    of(
      '[\\r\\n]',
      `\\s?[${deepseekLetters}]+`,
      '\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+',
      '\\s+$',
      '[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+',
      '\\p{N}+',
    ),
  ],
  [
    'deepseek-coder',
    of(
      '[\\r\\n]',
      '\\s?\\p{L}+',
      '\\s?\\p{P}+',
      '[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+',
      '\\p{N}',
    ),
  ],
  ['default', of(punctuationRuns, gpt2Pattern, '\\p{N}+', '[0-9][0-9][0-9]')],
  ['falcon', of('[\\p{P}\\$\\+<=>\\^~\\|`]+', gpt2Pattern, '[0-9][0-9][0-9]')],
  ['poro-chat bloom gpt3-finnish', bloomWords],
  ['viking', of(bloom, '\\p{N}')],
  ['bailingmoe bailingmoe2 llada-moe', bailing],
  [
    'seed-coder',
    of(`${contractions}|${word}|\\p{N}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|\\s*[\\r\\n]+|${spaces}`),
  ],
  ['superbpe', of('\\p{N}+', '(?=(\\d{3})+(?!\\d))')],
  ['laguna', of('[^\\n]+|[\\n]+', modern('\\p{N}'))],
  ['minicpm5', { ...of('\\p{N}{1,3}', modern('\\p{N}+')), ignoreMerges: true }],
  [
    'exaone-moe',
    of(
      `${contractions}|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}|` +
        `${symbols}[\\r\\n/]?|\\s*[\\r\\n]|${spaces}`,
    ),
  ],
  [
    'jais-2',
    of(
      `${contractions}|${word}|\\p{N}{1,3}|${symbols}[\\r\\n]*|\\s*[\\r\\n]+|` +
        '\\s{512}(?!\\S)|\\s{256}(?!\\S)|\\s{128}(?!\\S)|\\s{64}(?!\\S)|\\s{32}(?!\\S)|' +
        '\\s{16}(?!\\S)|\\s{8}(?!\\S)|\\s{4}(?!\\S)|\\s{1,2}(?!\\S)|\\s{1}',
    ),
  ],
  [
    'chameleon',
    {
      ...of(
        '<sentinel:[0-9]+>',
        '(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z',
        '([\\t\\n]|    |  )',
        '\\p{N}',
        '[\\p{P}!-/:-@\\[-`{-~]',
        gpt2Pattern,
      ),
      addBos: true,
    },
  ],
  ['tiny_aya cohere2moe', of('\\d{1,3}(?=(?:\\d{3})*\\b)', ...gpt4o.patterns)],
];

const table: ReadonlyMap<string, GgufPreTokenizer> = new Map(
  byNames.flatMap(([names, entry]) => names.split(' ').map((name) => [name, entry] as const)),
);

/** Undefined for a name that is not supported. */
export function ggufPreTokenizer(name: string): GgufPreTokenizer | undefined {
  return table.get(name);
}

/** The supported names, for messages. */
export const ggufPreTokenizerNames = `${table.size} names, such as gpt-2, llama-bpe and qwen2`;
