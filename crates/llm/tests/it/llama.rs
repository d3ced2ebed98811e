//! A real server of llama.cpp, which speaks three of the wires: PyPI `xllamacpp`, with a model of one
//! sentence (`llama/serve.py`).

use crate::{
    bench::{Bench, KEY, codec, door},
    foreign,
};
use bailey_kernel::{Completion, ModelError, ModelErrorKind, StopReason};
use bailey_llm::{Codec, Endpoint, Wire, provider};
use std::{fs, process::Stdio, time::Duration};
use tokio::process::{Child, Command};

const PACKAGE: &str = "xllamacpp==2026.10.11549";

const SERVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/llama/serve.py");

const WIRES: [Wire; 3] = [Wire::OpenAiChat, Wire::Anthropic, Wire::OpenAiResponses];

/// Its context in tokens, which are characters here.
const CONTEXT: u32 = 1024;

/// How wide a model is that takes a moment to load.
const WIDE: u32 = 1 << 17;

struct Llama {
    url: String,
    _server: Child,
    _folder: tempfile::TempDir,
}

impl Llama {
    /// Starts one, which may still load; `None`, with the reason printed, where it cannot be had.
    async fn start(forward: u32) -> Option<Self> {
        let pip = ["v/bin/pip", "install", "--quiet", "--no-deps", "--only-binary=:all:", PACKAGE];
        let steps: [&[&str]; 3] = [&["python3", "-m", "venv", "v"], &pip, &["touch", "installed"]];
        let python = foreign::installed("xllamacpp", "installed", &steps).await?.join("v/bin/python");
        let (folder, port) = (tempfile::tempdir().unwrap(), foreign::port());
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let server = Command::new(python)
            .arg(SERVE)
            .arg(folder.path())
            .args([u32::from(port), CONTEXT, forward].map(|number| number.to_string()))
            .env("API_KEY", KEY)
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let llama = Self { url: format!("http://127.0.0.1:{port}"), _server: server, _folder: folder };
        for _ in 0..600 {
            if tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
                return Some(llama);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let log = fs::read_to_string(llama._folder.path().join("log")).unwrap();
        panic!("llama.cpp did not start: {log}");
    }

    /// The same, when its model is there.
    async fn ready() -> Option<Self> {
        let llama = Self::start(32).await?;
        let codec = llama.codec(Wire::OpenAiChat);
        for _ in 0..600 {
            if llama.ask(&codec, "hello").await.is_ok() {
                return Some(llama);
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("llama.cpp never answers");
    }

    fn codec(&self, wire: Wire) -> std::sync::Arc<Codec> {
        let base = if wire == Wire::Anthropic { self.url.clone() } else { format!("{}/v1", self.url) };
        codec("llama", wire, &base)
    }

    /// One question in a conversation of its own.
    async fn ask(&self, codec: &Codec, words: &str) -> Result<Completion, ModelError> {
        let mut bench = Bench::new(|seal| door(&self.url, seal), "/tmp/run/toy").await;
        bench.say(words).await;
        bench.ask(codec).await
    }
}

#[tokio::test]
async fn a_conversation_is_streamed_and_counted() {
    let Some(llama) = Llama::ready().await else { return };
    for wire in WIRES {
        let mut bench = Bench::new(|seal| door(&llama.url, seal), "/tmp/run/toy").await;
        let codec = llama.codec(wire);
        let mut sizes = Vec::new();
        for words in ["hello", "and äll of it again"] {
            bench.say(words).await;
            let answer = bench.ask(&codec).await.unwrap();
            assert_eq!((answer.stop, answer.text.as_str()), (StopReason::Answered, "Done it."), "{wire:?}");
            // Each character, and the end.
            assert_eq!(answer.usage.output_tokens, 9, "{wire:?}");
            sizes.push(answer.usage.input_tokens);
        }
        // A token is a character, or a byte where the model has no such character; the template is its own.
        let more = " Done it.\nuser: and äll of it again\nassistant:".len() as u64;
        assert_eq!(sizes[1] - sizes[0], more, "{wire:?}: {sizes:?}");
    }
}

#[tokio::test]
async fn an_answer_is_cut_at_its_limit() {
    let Some(llama) = Llama::ready().await else { return };
    for wire in WIRES {
        let short = Endpoint { max_tokens: 4, ..llama.codec(wire).endpoint().clone() };
        let answer = llama.ask(&provider(short), "hello").await.unwrap();
        // Of its Responses it always says that they are complete.
        let stop = if wire == Wire::OpenAiResponses { StopReason::Answered } else { StopReason::Length };
        assert_eq!((answer.stop, answer.text.as_str()), (stop, "Done"), "{wire:?}");
    }
}

#[tokio::test]
async fn a_context_that_is_too_long_is_told_as_that() {
    let Some(llama) = Llama::ready().await else { return };
    for wire in WIRES {
        let codec = llama.codec(wire);
        let error = llama.ask(&codec, &"a".repeat(CONTEXT as usize)).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Overflow, "{wire:?}: {error}");
        // The control: half of it fits.
        assert_eq!(
            llama.ask(&codec, &"a".repeat(CONTEXT as usize / 2)).await.unwrap().stop,
            StopReason::Answered
        );
    }
}

#[tokio::test]
async fn a_wrong_key_is_told_as_that() {
    let Some(llama) = Llama::ready().await else { return };
    for wire in WIRES {
        let keyless = Endpoint { key: None, ..llama.codec(wire).endpoint().clone() };
        let error = llama.ask(&provider(keyless), "hello").await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Auth, "{wire:?}: {error}");
    }
}

#[tokio::test]
async fn a_server_that_still_loads_its_model_is_asked_again() {
    for wire in WIRES {
        let Some(llama) = Llama::start(WIDE).await else { return };
        let codec = llama.codec(wire);
        let mut refused = 0;
        let answer = loop {
            match llama.ask(&codec, "hello").await {
                Ok(answer) => break answer,
                Err(error) => {
                    assert!(matches!(error.kind, ModelErrorKind::Overloaded(_)), "{wire:?}: {error}");
                    assert!(error.kind.is_passing(), "{wire:?}: {error}");
                    refused += 1;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        };
        assert_eq!(answer.text, "Done it.", "{wire:?}");
        assert!(refused > 0, "{wire:?}: it had loaded before it was asked");
    }
}
