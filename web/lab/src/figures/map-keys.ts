// Moving over the cells of a map by keyboard. Only cells with a weight are visited: a key never
// after its query.
import type { Cell } from './types.js';

/** Rows that Page Up and Page Down move by. */
const PAGE = 10;

/**
 * Where a key leads from `cell`, or from the last cell when there is none; null when it is not a
 * moving key.
 */
export function moveCell(
  cell: Cell | null,
  { key, ctrlKey, metaKey }: Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey'>,
  length: number,
): Cell | null {
  if (length === 0) return null;
  const to = (query: number, toKey: number): Cell => {
    const row = Math.max(0, Math.min(length - 1, query));
    return { query: row, key: Math.max(0, Math.min(row, toKey)) };
  };
  const isMove = /^(Arrow(Up|Down|Left|Right)|Home|End|Page(Up|Down)|Enter| )$/.test(key);
  if (!isMove) return null;
  if (!cell) return to(length - 1, length - 1);
  switch (key) {
    case 'ArrowUp':
      return to(cell.query - 1, cell.key);
    case 'ArrowDown':
      return to(cell.query + 1, cell.key);
    case 'ArrowLeft':
      return to(cell.query, Math.min(cell.key, cell.query) - 1);
    case 'ArrowRight':
      return to(cell.query, cell.key + 1);
    case 'PageUp':
      return to(cell.query - PAGE, cell.key);
    case 'PageDown':
      return to(cell.query + PAGE, cell.key);
    case 'Home':
      return ctrlKey || metaKey ? to(0, 0) : to(cell.query, 0);
    case 'End':
      return ctrlKey || metaKey ? to(length - 1, length - 1) : to(cell.query, cell.query);
    default:
      return to(cell.query, cell.key);
  }
}
