// The first screen, prompt, prefill, decode, fork and play.
import { expect, readFixture, storiesPath, test, whole } from './lab.js';

test('the first screen shows a run that was computed now, and explains three words with links', async ({
  lab,
  page,
}) => {
  await lab.open();
  const { runs } = readFixture('stories260k/expected_greedy.json') as {
    runs: { prompt: string; prompt_ids: number[]; greedy_ids: number[] }[];
  };
  const run = runs.find(({ prompt }) => prompt === 'Once upon a time');
  expect(await lab.ids()).toEqual([
    ...(run?.prompt_ids ?? []),
    ...(run?.greedy_ids ?? []).slice(0, 12),
  ]);
  const links = page.locator('.intro-steps a');
  await expect(links).toHaveCount(3);
  for (const link of await links.all()) {
    await expect(page.locator((await link.getAttribute('href')) ?? '#missing')).toBeVisible();
  }
});

test('the prompt becomes chips while it is typed', async ({ lab, page, stories }) => {
  await lab.open();
  const text = 'The cat  sat\non it';
  await lab.prompt('');
  await page.locator('#prompt textarea').pressSequentially(text, { delay: 5 });
  const ids = [...(await stories.tokenize(text))];
  const chips = page.getByTestId('prompt-chips').locator('li');
  await expect(chips).toHaveCount(ids.length);
  await expect(chips.locator('.chip-id')).toHaveText(ids.map(String));
  await chips.nth(1).hover();
  await expect(chips.nth(1).locator('.chip-id')).toBeVisible();
  expect(
    (await chips.locator('.piece').allTextContents()).every(
      (piece) => piece.trim() === piece && piece !== '',
    ),
  ).toBe(true);
});

test('prefill at once and token by token give the same candidates', async ({ lab }) => {
  await lab.open();
  await lab.prompt('One day a dog');
  await lab.button('Prefill again').click();
  await expect(lab.fact('phase')).toHaveText('prefill');
  const n = (await lab.ids()).length;
  const atOnce = await lab.candidates.allTextContents();
  await lab.button('Start over, step by step').click();
  await lab.rows(1);
  for (let row = 2; row <= n; ++row) {
    await lab.button('Step one token').click();
    await lab.rows(row);
    await expect(lab.fact('phase')).toHaveText('decode');
  }
  await expect.poll(() => lab.candidates.allTextContents()).toEqual(atOnce);
});

test('decode: the likeliest, one chosen from the list, a drawn one', async ({ lab, stories }) => {
  await lab.open();
  const session = await stories.createSession();
  await session.prefill(await lab.ids());
  const [first, second] = await session.topTokens(2);

  await lab.button('Next token').click();
  await lab.rows(18);
  expect((await lab.ids()).at(-1)).toBe(first?.token);

  await lab.chips.nth(17).click();
  await lab.button('Rewind to before this token').click();
  await lab.rows(17);
  await lab.candidates.nth(1).click();
  await lab.rows(18);
  expect((await lab.ids()).at(-1)).toBe(second?.token);
  await expect(lab.fact('how')).toContainText('picked');

  await session.decode(second?.token ?? 0);
  const sampling = { temperature: 0.8, topK: 40, topP: 0.95, minP: 0, repetitionPenalty: 1 };
  const { draw } = await session.sample(sampling, 38n);
  await lab.button('Sample').click();
  await lab.rows(19);
  expect((await lab.ids()).at(-1)).toBe(draw.token);
  await session.dispose();
});

test('the same seed draws the same tokens, another seed others', async ({ lab, page }) => {
  await lab.open();
  await page.getByText('Sampling and seed').click();
  // Hot enough that two seeds part soon.
  await page.getByLabel('Temperature').fill('3');
  await page.getByLabel('Top-p').fill('1');
  const drawSix = async (): Promise<number[]> => {
    await lab.button('Prefill again').click();
    await lab.rows(5);
    for (let row = 6; row <= 11; ++row) {
      await lab.button('Sample').click();
      await lab.rows(row);
    }
    return lab.ids();
  };
  const first = await drawSix();
  await expect(page.getByTestId('draw')).toBeVisible();
  expect(await drawSix()).toEqual(first);
  await page.getByLabel('Seed').fill('7');
  expect(await drawSix()).not.toEqual(first);
});

test('play decodes at the chosen speed until it is paused', async ({ lab, page }) => {
  await lab.open();
  await page.getByLabel(/^Speed/).fill('60');
  await lab.button('Play').click();
  await expect.poll(() => lab.chips.count()).toBeGreaterThan(30);
  await lab.pause();
  const n = await lab.chips.count();
  await page.waitForTimeout(200);
  expect(await lab.chips.count()).toBe(n);
});

test('play ends where the cache is full, and says so', async ({ lab, page }) => {
  await lab.open();
  await lab.useToy();
  await page.getByLabel(/^Speed/).fill('60');
  await lab.button('Play').click();
  await lab.rows(4);
  await expect(page.getByText('Playing stopped: the cache is full.')).toBeVisible();
  await expect(lab.button('Next token')).toHaveAttribute('aria-disabled', 'true');
});

test('a fork keeps the first rows, byte for byte, and goes another way', async ({ lab, page }) => {
  await lab.open();
  const before = await lab.ids();
  await lab.chips.nth(9).click();
  await lab.button('Rewind to before this token').click();
  await lab.rows(9);
  expect(await lab.ids()).toEqual(before.slice(0, 9));
  await expect(page.getByTestId('unchanged')).toContainText('9 old rows unchanged');
  await lab.candidates.nth(2).click();
  await lab.rows(10);
  // Inside the prefill no logits were recorded: the row is computed again to get them.
  await lab.chips.nth(3).click();
  await lab.button('Rewind to before this token').click();
  await lab.rows(3);
  await expect(lab.candidates).toHaveCount(0);
  await lab.button('Next token').click();
  await lab.rows(4);
});

test('reset empties the cache', async ({ lab, page }) => {
  await lab.open();
  await lab.button('Reset').click();
  await lab.rows(0);
  await expect(page.getByTestId('run-state')).toHaveText('0 of 512 rows');
  await expect(lab.button('Next token')).toHaveAttribute('aria-disabled', 'true');
  await lab.button('Prefill').click();
  await lab.rows(5);
});

test('the toy model takes raw ids, and says what is not an id', async ({ lab, page }) => {
  await lab.open();
  await lab.useToy();
  await lab.prompt('0 7');
  await expect(page.getByRole('alert')).toContainText('“7” is not a token id');
  await lab.prompt('0 1 2');
  await expect(page.getByTestId('prompt-chips').locator('li')).toHaveCount(3);
  await lab.prompt('0 1 2 3 4');
  await expect(
    page.getByText('The prompt has 5 tokens, but the cache has room for 4.'),
  ).toBeVisible();
});

test('the facts of the model are shown as they are', async ({ lab, page, stories }) => {
  await lab.open();
  await page.getByText('About this model').click();
  const facts = page.locator('.panel .facts');
  await expect(facts).toContainText(stories.info.hash);
  await expect(facts).toContainText(whole(stories.info.nParameters));
  expect(storiesPath).toContain('q8_0');
});
