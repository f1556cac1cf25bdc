// The page as the tests see it: what a person reads and presses, and the package's own numbers to
// compare with.
import { test as base, expect, type Locator, type Page } from '@playwright/test';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { createEngine, type Engine, type EngineModel } from 'kvlens';

export { expect };

export const fixture = (path: string): string =>
  fileURLToPath(new URL(`../../.build/fixtures/${path}`, import.meta.url));

export const storiesPath = fixture('stories260k/stories260K-q8_0.gguf');
export const storiesF32Path = fixture('stories260k/stories260K-f32.gguf');

export const readFixture = (path: string): unknown =>
  JSON.parse(readFileSync(fixture(path), 'utf8'));

/**
 * The text of the cells of each row, as they are now. The page writes rows after a click, not with
 * it: compare with `expect.poll`, which looks again.
 */
export const cellsOf = (rows: Locator, cells = 'td'): Promise<string[][]> =>
  rows.evaluateAll(
    (found, selector) =>
      found.map((row) =>
        [...row.querySelectorAll(selector)].map((cell) => (cell.textContent ?? '').trim()),
      ),
    cells,
  );

/** A number as the page writes it, in English. */
export const whole = (value: number): string => new Intl.NumberFormat('en').format(value);

export class Lab {
  constructor(readonly page: Page) {}

  /** Opens the page and waits for its first run. */
  async open(address = './'): Promise<void> {
    await this.page.goto(address);
    await this.ready();
  }

  async ready(): Promise<void> {
    await expect(this.page.locator('.intro-lead')).toContainText(/computed by|вычислила/);
  }

  button(name: string | RegExp): Locator {
    return this.page.getByRole('button', { name, exact: true });
  }

  section(id: string): Locator {
    return this.page.locator(`#${id}`);
  }

  get chips(): Locator {
    return this.page.getByTestId('timeline-chips').locator('button');
  }

  get bars(): Locator {
    return this.page.getByTestId('bars');
  }

  /** Ids of the rows, as the chips tell them. */
  async ids(): Promise<number[]> {
    const labels = await this.chips.evaluateAll((chips) =>
      chips.map((chip) => chip.getAttribute('aria-label') ?? ''),
    );
    return labels.map((label) => Number(/id (\d+)/.exec(label)?.[1]));
  }

  async rows(n: number): Promise<void> {
    await expect(this.chips).toHaveCount(n);
  }

  /** Stops playing; the token that was under way has come then. */
  async pause(): Promise<void> {
    await this.button('Pause').click();
    await expect(this.button('Play')).toBeVisible();
    await expect(this.page.getByRole('progressbar', { name: 'Decode' })).toBeHidden();
  }

  /** A fact of the evidence, e.g. `scores`. */
  fact(key: string): Locator {
    return this.page.getByTestId('evidence').locator(`[data-fact="${key}"] dd`);
  }

  get candidates(): Locator {
    return this.page.getByTestId('candidates').getByRole('button');
  }

  async prompt(text: string): Promise<void> {
    await this.section('prompt').getByRole('textbox').fill(text);
  }

  async useToy(): Promise<void> {
    await this.page.getByLabel('Built-in model').selectOption('toy');
    await expect(this.page.getByTestId('model-line')).toContainText('f64');
    await expect(this.page.getByTestId('prompt-chips').locator('li')).toHaveCount(2);
  }
}

interface Fixtures {
  readonly lab: Lab;
}

interface WorkerFixtures {
  /** The package itself, in this process. */
  readonly engine: Engine;
  readonly stories: EngineModel;
}

export const test = base.extend<Fixtures, WorkerFixtures>({
  lab: async ({ page }, use) => {
    const errors: string[] = [];
    page.on('pageerror', (error) => errors.push(error.message));
    await use(new Lab(page));
    expect(errors, 'errors of the page').toEqual([]);
  },
  engine: [
    // Playwright reads the names of a fixture from this pattern, so it must be one.
    // eslint-disable-next-line no-empty-pattern
    async ({}, use) => {
      const engine = await createEngine({ threads: 1, variant: 'simd' });
      await use(engine);
      await engine.dispose();
    },
    { scope: 'worker' },
  ],
  stories: [
    async ({ engine }, use) => {
      const model = await engine.loadModel(storiesPath);
      await use(model);
      await model.dispose();
    },
    { scope: 'worker' },
  ],
});
