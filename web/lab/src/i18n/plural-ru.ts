const rules = new Intl.PluralRules('ru');

/** «1 строка», «2 строки», «5 строк». */
export function count(n: number, one: string, few: string, many: string): string {
  const form = rules.select(n);
  return `${n} ${form === 'one' ? one : form === 'few' ? few : many}`;
}
