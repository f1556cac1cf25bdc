// Every text that a figure shows or announces, in Russian.
import type { Place } from '../figures/types.js';
import type { FigureMessages } from './en-figures.js';
import { count } from './plural.js';

const headName = (head: number | 'mean') =>
  head === 'mean' ? 'среднее по головам' : `голова ${head}`;
const rows = (n: number) => count(n, 'строка', 'строки', 'строк');
/** «из 2 строк», «по 2 строкам». */
const ofRows = (n: number) => count(n, 'строки', 'строк', 'строк');
const overRows = (n: number) => count(n, 'строке', 'строкам', 'строкам');
const pair = (query: Place, key: Place) =>
  `${query.position} ${query.token} → ${key.position} ${key.token}`;

export const figures: FigureMessages = {
  locale: 'ru',
  head: (head) => (head === 'mean' ? 'Среднее' : `Голова ${head}`),
  layer: (layer) => `Слой ${layer}`,
  layerHead: (layer, head) => `Слой ${layer}, ${headName(head)}`,

  map: {
    label: (layer, head) => `Веса внимания, слой ${layer}, ${headName(head)}`,
    instructions:
      'Стрелки двигают выбранную ячейку. Home и End ведут к первому и последнему ключу строки. ' +
      'Page Up и Page Down сдвигают на десять строк. Escape снимает выбор.',
    queries: 'запрос: токен, который смотрит назад',
    keys: 'ключ: токен, на который он смотрит',
    cell: (query, key, weight) => `${pair(query, key)}: ${weight}`,
    maskedFuture: (query, key) => `${pair(query, key)}: веса нет, ключ стоит после запроса`,
    maskedWindow: (query, key, window) =>
      `${pair(query, key)}: веса нет, ключ вне окна в ${window}`,
    unknown: (query, key) => `${pair(query, key)}: не сохранено`,
    hiddenSink: (query, key, weight) => `${pair(query, key)}: ${weight} (столбец скрыт)`,
    pinned: 'закреплено (Esc или повторный щелчок снимает)',
    released: 'Выбор снят',
    hint: 'Наведите на ячейку, чтобы прочесть вес. Щелчок закрепит её.',
    pooled: (block) => `Каждый пиксель — наибольший из ${block} × ${block} весов.`,
    source: ({ state, replayedRows }, n) => {
      if (state === 'dropped') return 'Старые строки этого слоя удалены, чтобы сберечь память.';
      if (state === 'never')
        return 'Промпт слишком длинный: сохранить все строки при вычислении не удалось.';
      if (replayedRows === 0) return `Сохранены во время вычисления все строки (${rows(n)}).`;
      return `Вычислено повторным прогоном: ${replayedRows.toLocaleString('ru')} из ${ofRows(n)}; остальные сохранены во время вычисления.`;
    },
    recompute: 'Вычислить этот слой заново',
    recomputing: 'Вычисляется…',
    empty: 'Строк ещё нет. Сначала выполните prefill.',
  },

  legend: {
    weight: 'вес',
    masked: 'веса нет (будущее)',
    notCaptured: 'не сохранено',
    sinkHidden: 'позиция 0 скрыта',
  },

  controls: {
    palette: 'Цвета',
    palettes: { cividis: 'cividis', inferno: 'inferno', greys: 'серые' },
    scale: 'Шкала',
    scales: { linear: 'линейная', sqrt: 'корень', log: 'логарифм' },
    hideSink: 'Скрыть сток',
    hideSinkHelp:
      'Скрывает столбец 0, куда многие головы складывают лишнее внимание («сток внимания»), и подгоняет цвета под остальное.',
  },

  thumbnails: {
    label: 'Все головы: строка на слой, столбец на голову',
    instructions: 'Стрелки переходят между головами. Home и End ведут к краям слоя.',
    layerColumn: 'слой',
    meanColumn: 'ср.',
    caption: (block, n) =>
      block === 1
        ? `${rows(n)}, пиксель на каждый вес.`
        : `${rows(n)}. Каждый пиксель — наибольший из ${block} × ${block} весов.`,
    partial: (layers, all) =>
      layers === all
        ? 'Во всех слоях часть строк не сохранена.'
        : `Часть строк не сохранена: слоёв ${layers} из ${all}.`,
  },

  weights: {
    label: (layer, head) => `Веса на тексте, слой ${layer}, ${headName(head)}`,
    outgoing: 'на что смотрит выбранный токен (полоска снизу)',
    incoming: 'что смотрит на выбранный токен (полоска сверху)',
    token: ({ position, token }, outgoing, incoming) =>
      [
        `${position} ${token}`,
        outgoing === undefined ? '' : `на него смотрят с весом ${outgoing}`,
        incoming === undefined ? '' : `смотрит с весом ${incoming}`,
      ]
        .filter(Boolean)
        .join(', '),
    selected: ({ position, token }) => `Выбран: ${position} ${token}`,
    incomingUnknown:
      'Чтобы показать, что смотрит на этот токен, нужны все строки слоя. Вычислите слой заново.',
    hint: 'Щёлкните токен, чтобы увидеть, на что он смотрит и что смотрит на него.',
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
        'Насколько рассеяны веса строки: 0 бит, если всё забирает один ключ; log2 n, если n ключей делят поровну.',
      previous: 'Вес, который токен отдаёт предыдущему токену.',
      first: 'Вес, который токен отдаёт позиции 0: часто это сток внимания (Xiao и др., 2023).',
      induction:
        'Вес, который токен отдаёт токенам, стоявшим после его прежних появлений ' +
        '(совпадение префикса, Olsson и др., 2022). Считаются только токены, которые уже встречались.',
    },
    sortBy: (column) => `Сортировать: ${column}`,
    none: 'здесь не определено',
    allRows: (n) =>
      `Среднее по ${overRows(n)}. Строка 0 не учитывается: она может смотреть только на себя.`,
    someRows: (n, length) =>
      `Среднее по сохранённым строкам: ${n.toLocaleString('ru')} из ${length.toLocaleString('ru')}. Строка 0 не учитывается: она может смотреть только на себя.`,
    oneRow: ({ position, token }) => `Только для строки позиции ${position} ${token}.`,
    noRows: 'Усреднять пока нечего: строка 0 может смотреть только на себя.',
  },

  work: {
    label: (metric) =>
      ({
        causalScores: 'Произведения запрос–ключ: с кэшем и прогоном',
        scores: 'Оценки внимания в полной сетке: с кэшем и прогоном',
        multiplyAdds: 'Умножения-сложения: с кэшем и прогоном',
        milliseconds: 'Время: с кэшем и прогоном',
      })[metric],
    metric: 'Что считаем',
    metrics: {
      causalScores: 'произведения запрос–ключ',
      scores: 'оценки (полная сетка)',
      multiplyAdds: 'умножения-сложения',
      milliseconds: 'миллисекунды',
    },
    axes: 'Оси',
    linear: 'линейные',
    logLog: 'логарифмические',
    length: 'токенов в префиксе',
    cached: 'с кэшем',
    replay: 'прогоном',
    measured: 'измерено',
    computed: 'вычислено',
    avoided: 'сбережено',
    difference: 'прогон минус кэш',
    instructions: 'Стрелки влево и вправо переходят между префиксами.',
    point: (length, cached, replay, measured) =>
      `${count(length, 'токен', 'токена', 'токенов')}: с кэшем ${cached}, прогоном ${replay} ` +
      `(${measured ? 'измерено' : 'вычислено'})`,
    pointAvoided: (amount) => `сбережено ${amount}`,
    pointMore: (amount) => `с кэшем на ${amount} больше`,
    pointSame: 'разницы нет',
    sums: 'Итоги по всем шагам. Квадраты: прогон выполнен и измерен. Ромбы: прогон вычислен.',
    gridNote:
      'Полная сетка включает и закрытые маской оценки. Прогон заполняет сетку t × t, а строка с кэшем содержит только свои t оценок, поэтому числа различаются даже для prefill, где кэш ничего не сберегает.',
    timeNote:
      'Время измерено по одному разу на этом компьютере. Короткие шаги сильно колеблются, а первые ещё и прогревают движок.',
    noReplayTime: 'Прогонов ещё не было, сравнивать время не с чем.',
    table: 'Итоги до каждого префикса',
    phase: { prefill: 'prefill', decode: 'decode', extend: 'extend' },
    call: 'Шаг',
    replayKind: 'Прогон',
  },
};
