import type { FigureMessages } from './messages.js';

const headName = (head: number | 'mean') =>
  head === 'mean' ? 'среднее по головам' : `голова ${head}`;
const rules = new Intl.PluralRules('ru');

/** Three forms: 1 строка, 2 строки, 5 строк. */
function plural(n: number, one: string, few: string, many: string): string {
  const rule = rules.select(n);
  const word = rule === 'one' ? one : rule === 'few' ? few : many;
  return `${n.toLocaleString('ru')} ${word}`;
}

const rows = (n: number) => plural(n, 'строка', 'строки', 'строк');
const tokens = (n: number) => plural(n, 'токен', 'токена', 'токенов');

export const ru: FigureMessages = {
  locale: 'ru',
  head: (head) => (head === 'mean' ? 'Среднее' : `Голова ${head}`),
  layer: (layer) => `Слой ${layer}`,
  layerHead: (layer, head) => `Слой ${layer}, ${headName(head)}`,

  map: {
    label: (layer, head) => `Веса внимания, слой ${layer}, ${headName(head)}`,
    instructions:
      'Стрелки двигают выбранную ячейку, Home и End ведут к первому и последнему ключу строки, ' +
      'Page Up и Page Down сдвигают на десять строк, Escape снимает выбор.',
    queries: 'запрос: позиция, которая смотрит',
    keys: 'ключ: позиция, на которую смотрят',
    cell: (query, key, weight) =>
      `${query.position} ${query.token} → ${key.position} ${key.token}: ${weight}`,
    maskedFuture: (query, key) =>
      `${query.position} ${query.token} → ${key.position} ${key.token}: веса нет, ключ в будущем`,
    maskedWindow: (query, key, window) =>
      `${query.position} ${query.token} → ${key.position} ${key.token}: веса нет, ключ вне окна в ${window}`,
    unknown: (query, key) =>
      `${query.position} ${query.token} → ${key.position} ${key.token}: строки нет под рукой`,
    hiddenSink: (query, key, weight) =>
      `${query.position} ${query.token} → ${key.position} ${key.token}: ${weight} (столбец скрыт)`,
    pinned: 'закреплено; Esc снимает',
    released: 'Выбор снят',
    hint: 'Наведите на ячейку, чтобы прочесть вес; щелчок закрепляет её.',
    pooled: (block) => `Каждый пиксель — наибольший из ${block} × ${block} весов.`,
    source: ({ state, replayedRows }, n) => {
      if (state === 'dropped')
        return 'Старые строки этого слоя уступили место: кончился отведённый объём памяти.';
      if (state === 'never') return 'Часть строк этого слоя не сохраняли, когда их вычисляли.';
      if (replayedRows === 0) return `Все строки такие, какими их вычислили вызовы (${rows(n)}).`;
      return `Заново вычислено прогоном: ${rows(replayedRows)} из ${n}; остальные такие, какими их вычислили вызовы.`;
    },
    recompute: 'Вычислить прогоном',
    recomputing: 'Вычисляется…',
    empty: 'Строк ещё нет: подайте промпт.',
  },

  legend: {
    weight: 'вес',
    masked: 'веса нет (будущее)',
    sinkHidden: 'позиция 0 скрыта',
  },

  controls: {
    palette: 'Цвета',
    palettes: { cividis: 'cividis', inferno: 'inferno', greys: 'серые' },
    scale: 'Шкала',
    scales: { linear: 'линейная', sqrt: 'корень', log: 'логарифм' },
    hideSink: 'Скрыть сток',
    hideSinkHelp:
      'Убирает с рисунка позицию 0 (столбец 0), куда головы складывают вес, который им больше некуда деть, ' +
      'и подгоняет цвета под остальное.',
  },

  thumbnails: {
    label: 'Все головы: строки — слои, столбцы — головы',
    instructions: 'Стрелки переходят между головами, Home и End ведут к краям слоя.',
    layerColumn: 'слой',
    meanColumn: 'ср.',
    caption: (block, n) =>
      block === 1
        ? `${rows(n)}, один вес на пиксель.`
        : `${rows(n)}; пиксель — наибольший из ${block} × ${block} весов.`,
    partial: (layer, n, length) => `Слой ${layer}: показано строк — ${n} из ${length}.`,
  },

  weights: {
    label: (layer, head) => `Веса на тексте, слой ${layer}, ${headName(head)}`,
    outgoing: 'смотрит на (черта снизу)',
    incoming: 'на него смотрят (черта сверху)',
    token: ({ position, token }, outgoing, incoming) =>
      [
        `${position} ${token}`,
        outgoing === undefined ? '' : `на него смотрят с весом ${outgoing}`,
        incoming === undefined ? '' : `смотрит назад с весом ${incoming}`,
      ]
        .filter(Boolean)
        .join(', '),
    selected: ({ position, token }) => `Выбран: ${position} ${token}`,
    incomingUnknown: 'Для входящих весов нужны все строки слоя: вычислите их прогоном.',
    hint: 'Выберите токен, чтобы увидеть, на что он смотрит и что смотрит на него.',
  },

  table: {
    label: (layer) => `Оценки голов слоя ${layer}`,
    head: 'Голова',
    mean: 'Среднее по головам',
    scores: {
      entropy: 'Энтропия (бит)',
      previous: 'Предыдущий токен',
      first: 'Первый токен',
      induction: 'Индукция',
    },
    definitions: {
      entropy:
        'Энтропия весов строки: 0 бит, когда всё берёт один ключ, log2 n, когда n ключей делят поровну.',
      previous: 'Вес, который позиция отдаёт предыдущей.',
      first: 'Вес, который позиция отдаёт позиции 0, стоку внимания (Xiao и др., 2023).',
      induction:
        'Вес, который позиция отдаёт токенам, шедшим за прежними появлениями её собственного токена ' +
        '(совпадение префикса, Olsson и др., 2022); только по позициям, чей токен уже встречался.',
    },
    sortBy: (column) => `Сортировать: ${column}`,
    none: 'здесь не определено',
    allRows: (n) =>
      `Средние по увиденным строкам (${plural(n, 'позиция', 'позиции', 'позиций')}); строка 0, которая видит только себя, не в счёт.`,
    oneRow: ({ position, token }) => `Только строка позиции ${position} ${token}.`,
  },

  work: {
    label: (metric) =>
      ({
        scores: 'Оценки внимания: с кэшем и прогоном заново',
        causalScores: 'Произведения запроса на ключ: с кэшем и прогоном заново',
        multiplyAdds: 'Умножения со сложением: с кэшем и прогоном заново',
        milliseconds: 'Время: с кэшем и прогоном заново',
      })[metric],
    metric: 'Что считаем',
    metrics: {
      scores: 'оценки внимания',
      causalScores: 'произведения запроса на ключ',
      multiplyAdds: 'умножения со сложением',
      milliseconds: 'миллисекунды',
    },
    axes: 'Оси',
    linear: 'линейные',
    logLog: 'логарифмические',
    length: 'токенов в префиксе',
    cached: 'с кэшем',
    replay: 'прогоном заново',
    measured: 'измерено',
    computed: 'вычислено',
    avoided: 'сбережено',
    instructions: 'Стрелки влево и вправо переходят между префиксами.',
    point: (length, cached, replay, measured, avoided) =>
      `${tokens(length)}: с кэшем ${cached}, прогоном ${replay} ` +
      `(${measured ? 'измерено' : 'вычислено'}), сбережено ${avoided}`,
    sums: 'Каждая сумма — по всем вызовам до этого места. Квадрат стоит там, где прогон был: его вклад измерен, вклад остальных вычислен.',
    noReplayTime: 'Прогонов ещё не было, сравнивать время не с чем.',
    table: 'Суммы до каждого префикса',
    phase: { prefill: 'prefill', decode: 'decode', extend: 'extend' },
    call: 'Вызов',
    replayKind: 'Прогон',
  },
};
