// A number with its noun in the right form.

/** "1 row", "1,024 rows". */
export function plural(n: number, one: string, many: string): string {
  return `${n.toLocaleString('en')} ${n === 1 ? one : many}`;
}

const rules = new Intl.PluralRules('ru');

/** «1 строка», «2 строки», «5 строк». */
export function count(n: number, one: string, few: string, many: string): string {
  const form = rules.select(n);
  return `${n.toLocaleString('ru')} ${form === 'one' ? one : form === 'few' ? few : many}`;
}
