// Starts the page: settings, engine, and a first run that is computed here and now.
import { render } from 'preact';
import './styles/index.css';
import { App } from './app.jsx';
import { keepOffline } from './offline.js';
import { followSettings } from './settings.js';
import { announceOutcomes } from './announcements.js';
import { followAddress, readAddress } from './state/address.js';
import { openWith } from './state/startup.js';

followSettings();
const root = document.getElementById('app');
if (root) render(<App />, root);
announceOutcomes();
void openWith(readAddress()).then(followAddress);
void keepOffline();
