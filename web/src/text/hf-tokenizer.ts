/**
 * The part of `@huggingface/tokenizers` that is used, with types: the package's own declarations do
 * not resolve under NodeNext.
 */
import { Tokenizer } from '@huggingface/tokenizers';

/** A tokenizer made of a tokenizer.json. */
export interface HfTokenizer {
  encode(
    text: string,
    options: { readonly add_special_tokens: boolean },
  ): { readonly ids: number[]; readonly tokens: string[] };
  token_to_id(token: string): number | undefined;
}

/** Throws whatever the package throws at parts that it does not have. */
export function hfTokenizer(json: object, config: object): HfTokenizer {
  const Constructor = Tokenizer as unknown as new (json: object, config: object) => HfTokenizer;
  return new Constructor(json, config);
}
