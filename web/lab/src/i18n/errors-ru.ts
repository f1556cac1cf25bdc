// Errors of the package in Russian: a sentence for each code, with what was found, where, and the
// limit.
import type { AnyKvLensError, ErrorCode, ErrorContexts } from 'kvlens';
import { count } from './plural.js';

const shape = (sizes: readonly number[]): string => `[${sizes.join(', ')}]`;
const bytes = (n: number): string => count(n, 'байт', 'байта', 'байтов');

const sentences: { readonly [C in ErrorCode]: (context: ErrorContexts[C]) => string } = {
  invalid_config: (c) =>
    `Поле конфигурации «${c.field}» равно ${c.value}, а допустимо: ${c.allowed}.`,
  missing_parameter: (c) => `Нет параметра «${c.name}».`,
  unknown_parameter: (c) => `Параметр «${c.name}» этой конфигурации не известен.`,
  duplicate_parameter: (c) => `Параметр «${c.name}» дан дважды.`,
  parameter_shape_mismatch: (c) =>
    `Форма параметра «${c.name}» — ${shape(c.actual)}, а нужна ${shape(c.expected)}.`,
  parameter_size_mismatch: (c) => `Размер параметра — ${c.actual}, а нужен ${c.expected}.`,
  unsupported_dtype: (c) => `Тип хранения здесь не поддерживается: «${c.name}».`,
  non_finite_parameter: (c) =>
    `В параметре «${c.tensor}» элемент ${c.index} — не конечное число: ${c.value}.`,
  parameter_borrowed: (c) =>
    `Вес нельзя заменить: модель занята (${count(c.count, 'сеанс', 'сеанса', 'сеансов')}).`,
  out_of_memory: (c) => `Не удалось получить память: ${bytes(c.bytes)}.`,
  size_overflow: () => 'Размер слишком велик, чтобы его сосчитать.',
  work_overflow: () => 'Счётчик работы переполнился.',
  non_finite_value: (c) => `В «${c.tensor}» элемент ${c.index} — не конечное число: ${c.value}.`,
  zero_batch: () => 'Пустая группа последовательностей.',
  zero_capacity: () => 'Ёмкость кэша не может быть нулевой.',
  capacity_exceeds_max_seq_len: (c) =>
    `Ёмкость кэша ${c.value} больше контекста модели: ${c.limit}.`,
  cache_full: (c) => `Кэш заполнен: потребовалось бы ${c.value}, а ёмкость — ${c.limit}.`,
  cache_changed: (c) => `Кэш изменили со стороны: в нём ${c.actual} вместо ${c.expected}.`,
  invalid_length: (c) => `Длина ${c.value} недопустима; предел — ${c.limit}.`,
  rank_mismatch: (c) => `Число измерений — ${c.actual}, а нужно ${c.expected}.`,
  not_a_single_token: (c) => `Нужен ровно ${c.expected} токен, а дано: ${c.actual}.`,
  batch_mismatch: (c) => `Последовательностей ${c.actual}, а нужно ${c.expected}.`,
  width_mismatch: (c) => `Ширина — ${c.actual}, а нужна ${c.expected}.`,
  shape_mismatch: (c) => `Форма «${c.name}» — ${shape(c.actual)}, а нужна ${shape(c.expected)}.`,
  config_mismatch: (c) =>
    `Кэш создан для другой конфигурации: «${c.field}» равно ${c.value}, а нужно ${c.allowed}.`,
  parameter_count_mismatch: (c) => `Параметров ${c.actual}, а кэш создан для ${c.expected}.`,
  parameter_identity_mismatch: (c) => `Параметр «${c.name}» — не тот, для которого создан кэш.`,
  parameter_revision_mismatch: (c) =>
    `Параметр «${c.name}» заменили после создания кэша: версия была ${c.captured}, теперь ${c.current}.`,
  layer_count_mismatch: (c) => `Слоёв ${c.actual}, а нужно ${c.expected}.`,
  incoherent_lengths: (c) => `В слое ${c.layer} строк ${c.actual}, а в остальных ${c.expected}.`,
  layer_batch_mismatch: (c) =>
    `В слое ${c.layer} последовательностей ${c.actual}, а нужно ${c.expected}.`,
  layer_capacity_mismatch: (c) => `Ёмкость слоя ${c.layer} — ${c.actual}, а нужна ${c.expected}.`,
  layer_geometry_mismatch: (c) =>
    `Устройство слоя ${c.layer} иное: ${c.actual} вместо ${c.expected}.`,
  layer_rope_mismatch: (c) => `RoPE слоя ${c.layer} иной: ${c.actual} вместо ${c.expected}.`,
  empty_prompt: () => 'Промпт пуст: нужен хотя бы один токен.',
  prompt_exceeds_capacity: (c) =>
    `В промпте ${count(c.value, 'токен', 'токена', 'токенов')}, а кэш вмещает ${c.limit}.`,
  token_out_of_range: (c) =>
    `Токен ${c.id} (место ${c.position}) вне словаря: номера идут от 0 до ${c.vocabSize - 1}.`,
  not_empty: (c) =>
    `Prefill возможен только на пустом кэше, а в нём ${count(c.count, 'строка', 'строки', 'строк')}.`,
  not_prefilled: () => 'Decode возможен только после prefill: кэш пуст.',
  call_in_progress: () => 'Предыдущий вызов ещё не закончен.',
  no_call_in_progress: () => 'Нет начатого вызова.',
  savepoint_ended: () => 'Точка возврата больше не действует: сеанс уже вернулся к более ранней.',
  interrupted: (c) => `Вызов прерван: этап «${c.stage}», слой ${c.layer}, позиция ${c.position}.`,
  count_mismatch: (c) =>
    `Счётчик «${c.field}» показал ${c.value}, а по формуле должно быть ${c.allowed}.`,
  cached_exceeds_replay: (c) => `С кэшем ${c.value}, а при прогоне без него только ${c.limit}.`,
  invalid_sampling: (c) =>
    `Настройка выбора «${c.field}» равна ${c.value}, а допустимо: ${c.allowed}.`,
  invalid_argument: (c) => `Аргумент «${c.field}» равен ${c.value}, а допустимо: ${c.allowed}.`,
  invalid_file: (c) =>
    `Файл ${c.file} противоречит своему формату: «${c.field}» — ${c.value}, а допустимо: ${c.allowed}.`,
  unsupported_file: (c) =>
    `Файл ${c.file} требует того, чего kvlens не умеет: «${c.field}» — ${c.value}, поддерживается: ${c.allowed}.`,
  truncated_file: (c) => `Файл ${c.file} обрывается: в нём ${bytes(c.size)}, а нужно ${c.needed}.`,
  missing_file: (c) => `Не хватает файла «${c.name}».`,
  network_error: (c) =>
    `Не удалось получить ${c.url}${c.status === undefined ? '' : ` (ответ ${c.status})`}.`,
  aborted: () => 'Прервано по вашему сигналу.',
  invalid_tokenizer: (c) =>
    `Данные токенизатора противоречивы: «${c.field}» — ${c.value}, а допустимо: ${c.allowed}.`,
  unsupported_tokenizer: (c) =>
    `Такого токенизатора в kvlens нет: «${c.field}» — ${c.value}, поддерживается: ${c.allowed}.`,
  no_chat_template: () => 'У этой модели нет шаблона беседы.',
  chat_template_failed: () => 'Шаблон беседы не сработал.',
  cache_unavailable: () => 'Хранилище загрузок недоступно или переполнено.',
  disposed: (c) => `Уже освобождено: ${c.name}.`,
  model_in_use: (c) => `Модель занята: ${count(c.count, 'сеанс', 'сеанса', 'сеансов')}.`,
  cache_in_use: (c) => `Кэш занят: ${count(c.count, 'сеанс', 'сеанса', 'сеансов')}.`,
  no_logits: () => 'Логитов нет: после привязки, сброса или усечения ещё не было удачного вызова.',
  no_schedule: () => 'Вызовы этого сеанса — не один prefill и последующие decode.',
  module_aborted: () => 'Модуль аварийно остановился; поможет только новый.',
  module_load_failed: (c) => `Модуль не удалось загрузить: ${c.name}.`,
  unsupported_environment: (c) =>
    `Этому браузеру или странице не хватает: «${c.field}» — ${c.value}, а нужно ${c.allowed}.`,
  model_too_large: (c) =>
    `Модель слишком велика: нужно ${bytes(c.value)}, а есть место для ${c.limit}.`,
  no_tokenizer: () => 'У этой модели нет токенизатора.',
  worker_died: () => 'Рабочий поток движка завершился.',
};

export function russianError(error: AnyKvLensError): string {
  // The table is total over codes; the compiler cannot pair a union of codes with its contexts.
  const sentence = sentences[error.code] as (context: unknown) => string;
  return sentence(error.context);
}
