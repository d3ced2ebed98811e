//! How many tokens a request may come to, before a provider has counted it.

/// At most this many bytes make one token, by our count.
///
/// Tokenizers of today take about four bytes of English and three of code, JSON and CJK text to a token. Three is
/// the careful choice for all of them; a budget reserves by it and settles by what the provider reports. Only
/// text that no tokenizer knows (random hexadecimal or base64) comes to more tokens than this says.
pub const BYTES_PER_TOKEN: usize = 3;

/// The estimate for a request body of `bytes` bytes, rounded up.
#[must_use]
pub fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN) as u64
}
