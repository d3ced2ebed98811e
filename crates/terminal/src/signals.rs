//! Signals: Ctrl-C, the end of the terminal, a request to end, Ctrl-Z, and a change of the terminal's size.

use crate::print;
use anyhow::{Context as _, Result};
use bailey_protocol::exit;
use std::{future::poll_fn, task::Poll, thread};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// A signal to a program at a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TerminalSignal {
    /// Ctrl-C.
    Cancel,
    /// The terminal was closed.
    HangUp,
    /// This program was asked to end.
    Terminate,
    /// Ctrl-Z.
    Suspend,
    /// The terminal's size changed.
    Resize,
}

/// Listens for signals.
#[derive(Debug)]
pub(super) struct Signals {
    signals: Vec<(TerminalSignal, Signal)>,
}

impl Signals {
    pub(super) fn listen() -> Result<Self> {
        let mut kinds = vec![
            (TerminalSignal::Cancel, SignalKind::interrupt()),
            (TerminalSignal::Terminate, SignalKind::terminate()),
            (TerminalSignal::Resize, SignalKind::window_change()),
        ];
        // A user who started this program with `nohup` wants it to go on.
        if !is_ignored(SignalKind::hangup()) {
            kinds.push((TerminalSignal::HangUp, SignalKind::hangup()));
        }
        let mut signals = Vec::new();
        for (heard, kind) in kinds {
            signals.push((heard, signal(kind).context("Ctrl-C and signals cannot be heard")?));
        }
        watch()?;
        Ok(Self { signals })
    }

    /// Also listens for Ctrl-Z, for a front end that must restore the terminal's settings first.
    pub(super) fn listen_suspend(&mut self) -> Result<()> {
        let suspend = signal(SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw()));
        self.signals.push((TerminalSignal::Suspend, suspend.context("Ctrl-Z cannot be heard")?));
        Ok(())
    }

    /// The next signal.
    pub(super) async fn next(&mut self) -> TerminalSignal {
        let heard = poll_fn(|context| {
            for (heard, signal) in &mut self.signals {
                if let Poll::Ready(Some(())) = signal.poll_recv(context) {
                    return Poll::Ready(*heard);
                }
            }
            Poll::Pending
        });
        let heard = heard.await;
        print::unstick(false);
        heard
    }
}

/// Listens for the signals that end a program which has no user to ask.
#[derive(Debug)]
pub struct EndSignals(Signals);

impl EndSignals {
    /// Begins to listen.
    pub fn listen() -> Result<Self> {
        Signals::listen().map(Self)
    }

    /// Waits for such a signal and gives its exit code.
    pub async fn heard(&mut self) -> u8 {
        loop {
            match self.0.next().await {
                TerminalSignal::Cancel => return exit::CANCELLED,
                TerminalSignal::HangUp => return exit::HUNG_UP,
                TerminalSignal::Terminate => return exit::TERMINATED,
                TerminalSignal::Suspend | TerminalSignal::Resize => {}
            }
        }
    }
}

/// Watches from a thread of its own. Code that waits for a reader of the output hears no signal, so this
/// thread tells it to stop waiting.
fn watch() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let watching = move || {
        runtime.block_on(async {
            let (Ok(mut cancel), Ok(mut end)) =
                (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
            else {
                return;
            };
            loop {
                tokio::select! {
                    _ = cancel.recv() => print::unstick(true),
                    _ = end.recv() => print::unstick(true),
                }
            }
        });
    };
    thread::Builder::new().name("signals".into()).spawn(watching)?;
    Ok(())
}

/// Whether this process was started with the signal ignored.
pub fn is_ignored(kind: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (kind.as_raw_value() - 1) & 1 == 1
}
