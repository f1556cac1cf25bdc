/** Calls a method that a message names. */

export function includes(names: readonly string[], name: string): boolean {
  return names.includes(name);
}

/** Calls `target[name]`; if that is a property, returns its value. */
export function callNamed(target: object, name: string, args: readonly unknown[]): unknown {
  const member = (target as Record<string, unknown>)[name];
  if (typeof member !== 'function') return member;
  return (member as (...args: unknown[]) => unknown).call(target, ...args);
}
