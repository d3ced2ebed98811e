//! What fuzz targets reach.

use super::events::Events;

/// Reads a stream of events in two pieces, and as a whole: that is the same.
///
/// # Panics
/// When it is not, or an event is longer than the bound.
pub fn events(data: &[u8]) {
    const BYTES_MAX: usize = 256;
    let (first, rest) = data.split_at(data.len() / 2);
    let (mut whole, mut torn) = (Events::new(BYTES_MAX), Events::new(BYTES_MAX));
    let whole = whole.push(data);
    let torn = torn.push(first).and_then(|first| Ok([first, torn.push(rest)?].concat()));
    assert_eq!(whole, torn);
    for event in whole.into_iter().flatten() {
        // A byte that is no UTF-8 becomes three.
        assert!(event.data.len() <= 3 * BYTES_MAX && !event.id.contains('\0'), "{event:?}");
    }
}
