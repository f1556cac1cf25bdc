// The wordmark, and the settings of the page itself.
import { text } from '../i18n/index.js';
import { locale, theme } from '../settings.js';
import { Button } from '../ui/controls.jsx';
import { Icon } from '../ui/icons.jsx';
import { Segments } from '../ui/segments.jsx';
import { showKeys } from './keys.jsx';

function Wordmark() {
  return (
    <span class="wordmark">
      <svg viewBox="0 0 26 26" aria-hidden="true">
        <path
          class="wordmark-rows"
          d="M3 3h6v6H3zM3 10h6v6H3zM10 10h6v6h-6zM3 17h6v6H3zM10 17h6v6h-6z"
        />
        <path class="wordmark-new" d="M17 17h6v6h-6z" />
      </svg>
      kvlens <span class="muted">{text.value.lab}</span>
    </span>
  );
}

export function Header() {
  const t = text.value;
  return (
    <header class="header">
      <Wordmark />
      <div class="header-choices">
        <Segments
          legend={t.language}
          value={locale.value}
          onChange={(value) => (locale.value = value)}
          options={[
            { value: 'en', label: t.languages.en, icon: <span aria-hidden="true">EN</span> },
            { value: 'ru', label: t.languages.ru, icon: <span aria-hidden="true">RU</span> },
          ]}
        />
        <Segments
          legend={t.theme}
          value={theme.value}
          onChange={(value) => (theme.value = value)}
          options={[
            { value: 'system', label: t.themes.system, icon: <Icon name="system" /> },
            { value: 'light', label: t.themes.light, icon: <Icon name="sun" /> },
            { value: 'dark', label: t.themes.dark, icon: <Icon name="moon" /> },
          ]}
        />
        <Button
          kind="icon"
          aria-label={t.help}
          title={t.help}
          aria-haspopup="dialog"
          onClick={showKeys}
        >
          ?
        </Button>
      </div>
    </header>
  );
}
