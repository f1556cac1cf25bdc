import { StrictMode, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { Story } from './story.jsx';

function App() {
  const [file, setFile] = useState();
  const [prompt, setPrompt] = useState('Once upon a time');
  return (
    <>
      <p>
        <label>
          A GGUF file: <input type="file" onChange={(event) => setFile(event.target.files[0])} />
        </label>
      </p>
      <p>
        <label>
          Prompt: <input value={prompt} onChange={(event) => setPrompt(event.target.value)} />
        </label>
      </p>
      {file && <Story file={file} prompt={prompt} />}
    </>
  );
}

createRoot(document.getElementById('root')).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
