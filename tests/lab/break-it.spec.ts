// Every refused operation, for real: its code, its words, and nothing changed.
import { cellsOf, expect, test } from './lab.js';

const attempts = [
  ['Decode before prefill', 'not_prefilled'],
  ['Prefill twice', 'not_empty'],
  ['Token out of range', 'token_out_of_range'],
  ['Past the capacity', 'cache_full'],
  ['Edit a weight in use', 'parameter_borrowed'],
  ['Bind after a weight edit', 'parameter_revision_mismatch'],
  ['Abort mid-prefill', 'aborted'],
  ['Plant a NaN', 'non_finite_parameter'],
] as const;

test('each attempt is refused with its code, and hashes before and after are equal', async ({
  lab,
  page,
}) => {
  await lab.open();
  const ids = await lab.ids();
  for (const [name, code] of attempts) {
    await lab.button(`Try: ${name}`).click();
    const outcome = page.locator('.attempt', { hasText: name }).locator('.outcome');
    await expect(outcome.locator('.code')).toHaveText(code);
    await expect(outcome).toContainText('Refused');
    await expect(outcome).toContainText('Nothing changed');
    await expect(outcome).toContainText('Your own session’s 17 rows: also unchanged.');
    await outcome.getByText('Hashes, length and counters').click();
    const rows = outcome.locator('tbody tr');
    await expect(rows.nth(2)).toBeVisible();
    for (const [before, after] of await cellsOf(rows)) expect(after).toBe(before);
  }
  expect(await lab.ids()).toEqual(ids);
});

test('all at once', async ({ lab, page }) => {
  await lab.open();
  await lab.button('Try all').click();
  await expect(page.locator('.outcome')).toHaveCount(attempts.length);
  await expect(page.locator('.outcome .verdict.wrong')).toHaveCount(0);
});
