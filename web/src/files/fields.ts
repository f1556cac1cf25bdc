/** Typed and checked access to the named values of a file. */
import { invalid } from './file-errors.js';

/** Errors of every method: invalid_file. */
export abstract class Fields {
  protected constructor(readonly file: string) {}

  /** The value as it is, or undefined if the field is absent. */
  abstract raw(field: string): unknown;

  /** The name of a field in messages. */
  name(field: string): string {
    return field;
  }

  /** An integer in `[least, most]`, or `fallback` if the field is absent. */
  integer(field: string, least: number, most: number, fallback?: number): number {
    const value = this.raw(field) ?? fallback;
    if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most) {
      throw this.invalid(field, value, `an integer from ${least} to ${most}`);
    }
    return value;
  }

  /** A finite positive number, or `fallback` if the field is absent. */
  positive(field: string, fallback?: number): number {
    const value = this.raw(field) ?? fallback;
    if (typeof value !== 'number' || !(value > 0) || !Number.isFinite(value)) {
      throw this.invalid(field, value, 'a positive number');
    }
    return value;
  }

  boolean(field: string, fallback: boolean): boolean {
    const value = this.raw(field) ?? fallback;
    if (typeof value !== 'boolean') throw this.invalid(field, value, 'true or false');
    return value;
  }

  string(field: string): string | undefined {
    const value = this.raw(field);
    if (value === undefined || typeof value === 'string') return value;
    throw this.invalid(field, value, 'a string');
  }

  protected invalid(field: string, value: unknown, allowed: string): Error {
    return invalid(this.file, this.name(field), value, allowed);
  }
}
