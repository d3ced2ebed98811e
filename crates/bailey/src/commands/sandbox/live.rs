//! A command's output while it runs, on its way to whoever reads ours.

use crate::print::Printer;
use bailey_kernel::Printed;
use bailey_secrets::neutralise;
use std::io::{self, IsTerminal as _};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Pieces that wait to be written. The command waits when there are more.
pub(super) const PIECES_WAITING_MAX: usize = 8;

/// Writes each piece as it comes. When nobody reads the command's standard output any more, the command is
/// ended; the code to exit with then.
pub(super) async fn write(
    mut pieces: mpsc::Receiver<Printed>,
    cancel: &CancellationToken,
    limit: u64,
    printer: &Printer,
) -> Option<u8> {
    let mut out = Text::new(io::stdout().is_terminal());
    let mut err = Text::new(io::stderr().is_terminal());
    while let Some(piece) = pieces.recv().await {
        let written = match piece {
            Printed::Stdout(bytes) => printer.bytes(&out.take(bytes)),
            Printed::Stderr(bytes) => {
                printer.error_bytes(&err.take(bytes));
                Ok(())
            }
            Printed::LeftOut(bytes) => {
                printer.warn(&format!("{bytes} bytes left out: more than {limit} bytes of output"));
                Ok(())
            }
        };
        if let Err(error) = written {
            cancel.cancel();
            // What still comes is for nobody, and the command must not wait for that.
            pieces.close();
            return Some(printer.unprinted(error));
        }
    }
    printer.error_bytes(&err.rest());
    printer.bytes(&out.rest()).err().map(|error| printer.unprinted(error))
}

/// Bytes as they may be written: harmless on a terminal, which takes a character only when it is whole; in a
/// pipe as they are.
struct Text {
    is_terminal: bool,
    /// The beginning of a character.
    begun: Vec<u8>,
}

impl Text {
    fn new(is_terminal: bool) -> Self {
        Self { is_terminal, begun: Vec::new() }
    }

    fn take(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        if !self.is_terminal {
            return bytes;
        }
        let mut whole = std::mem::take(&mut self.begun);
        whole.extend(bytes);
        if let Some(last) = whole.utf8_chunks().last().map(|chunk| chunk.invalid().to_vec())
            && str::from_utf8(&last).is_err_and(|error| error.error_len().is_none())
        {
            whole.truncate(whole.len() - last.len());
            self.begun = last;
        }
        harmless(&whole)
    }

    fn rest(self) -> Vec<u8> {
        harmless(&self.begun)
    }
}

fn harmless(bytes: &[u8]) -> Vec<u8> {
    neutralise(&String::from_utf8_lossy(bytes)).into_owned().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::Text;

    #[test]
    fn a_character_in_pieces_is_one_on_a_terminal() {
        let whole = "é€😀\u{1b}[31m".as_bytes();
        for size in 1..=whole.len() {
            let mut text = Text::new(true);
            let mut shown: Vec<u8> = whole.chunks(size).flat_map(|piece| text.take(piece.to_vec())).collect();
            shown.extend(text.rest());
            assert_eq!(String::from_utf8(shown).unwrap(), "é€😀␛[31m", "pieces of {size}");
        }
        let mut cut = Text::new(true);
        assert_eq!(cut.take(b"a\xf0\x9f".to_vec()), b"a");
        assert_eq!(cut.take(b"b\xff".to_vec()), "\u{fffd}b\u{fffd}".as_bytes(), "what is no character");
        assert_eq!(cut.take(b"\xc3".to_vec()), b"");
        assert_eq!(cut.rest(), "\u{fffd}".as_bytes());
        // Control: a pipe gets the bytes.
        assert_eq!(Text::new(false).take(whole.to_vec()), whole);
    }
}
