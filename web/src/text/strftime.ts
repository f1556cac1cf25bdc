/** Dates as Python's `strftime` writes them in English. */

const days = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const months = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
];

/** Local time by `format`. Throws an Error that names a directive it does not know. */
export function strftime(format: string, date: Date): string {
  const year = date.getFullYear();
  const midnight = (day: Date) => Date.UTC(day.getFullYear(), day.getMonth(), day.getDate());
  const dayOfYear = (midnight(date) - Date.UTC(year, 0, 0)) / 86_400_000;
  const numbers: Readonly<Record<string, readonly [number, number]>> = {
    d: [date.getDate(), 2],
    m: [date.getMonth() + 1, 2],
    y: [year % 100, 2],
    Y: [year, 4],
    H: [date.getHours(), 2],
    I: [date.getHours() % 12 || 12, 2],
    M: [date.getMinutes(), 2],
    S: [date.getSeconds(), 2],
    j: [dayOfYear, 3],
    w: [date.getDay(), 1],
  };
  const names: Readonly<Record<string, string>> = {
    A: days[date.getDay()]!,
    a: days[date.getDay()]!.slice(0, 3),
    B: months[date.getMonth()]!,
    b: months[date.getMonth()]!.slice(0, 3),
    p: date.getHours() < 12 ? 'AM' : 'PM',
    '%': '%',
  };
  return format.replace(/%(-?)([\s\S]?)/g, (whole, minus: string, letter: string) => {
    const number = numbers[letter];
    if (number !== undefined) {
      const [value, width] = number;
      return minus === '-' ? String(value) : String(value).padStart(width, '0');
    }
    const name = minus === '' ? names[letter] : undefined;
    if (name === undefined) throw new Error(`strftime_now does not support "${whole}"`);
    return name;
  });
}
