//! Entries for the fuzz targets into the parsers of programs' bytes. Only the feature `fuzz` has them. Each
//! fails when a promise is broken.

use crate::{
    Effects,
    frame::{FRAME_BYTES_MAX, Frames, answer, ready},
    shelf::{Shelf, TOOLS_MAX},
    speech::Speech,
};
use std::sync::Arc;

/// The bytes of a program, cut wherever the first byte says: frames within the limit come out as they went
/// in, longer ones are not kept, and a peer has no more tools than it may.
pub fn program(bytes: &[u8]) {
    let Some((cut, stream)) = bytes.split_first() else { return };
    let shelf = Arc::new(Shelf::new("p".into(), Effects::default()));
    let speeches = [Speech::Verdicts, Speech::Tools(shelf.clone())];
    let mut frames = Frames::default();
    let mut taken = Vec::new();
    for piece in stream.chunks(usize::from(*cut).max(1)) {
        frames.bytes.extend_from_slice(piece);
        loop {
            match frames.next() {
                Ok(Some(json)) => {
                    assert!(json.len() <= FRAME_BYTES_MAX);
                    for speech in &speeches {
                        drop(ready(&json).and_then(|first| speech.begin(&first)));
                        drop(answer(&json, speech.form()).and_then(|(_, object)| speech.answer(&object)));
                    }
                    assert!(shelf.tools().len() <= TOOLS_MAX);
                    taken.extend(u32::try_from(json.len()).unwrap_or_default().to_be_bytes());
                    taken.extend_from_slice(&json);
                }
                Ok(None) => break,
                Err(error) => return assert!(!error.to_string().is_empty()),
            }
        }
    }
    taken.extend_from_slice(&frames.bytes);
    assert_eq!(taken, stream, "a byte was lost or changed");
}
