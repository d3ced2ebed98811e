//! What is known of models besides their wires: how much they take, and what they cost. A file that is
//! shipped, and one of the user's own that goes first, so that a price can be set right without a release.

use bailey_kernel::Price;
use bailey_protocol::authority;
use serde::Deserialize;

/// The shipped file.
const SHIPPED: &str = include_str!("catalogue.toml");

/// The largest file that is read, in bytes.
const CATALOGUE_BYTES_MAX: usize = 1 << 20;

/// What is known of models.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    /// The user's own first.
    entries: Vec<ModelEntry>,
}

/// A catalogue cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// It is no catalogue; the text names line and column.
    #[error(
        "{0}; write each model as [[model]] with `host`, `name` and what is known: `window`, `images`, `input`, `output`"
    )]
    Malformed(Box<toml::de::Error>),
    /// A price is no amount.
    #[error(
        "`{0}` is no price: write an amount for a million tokens as a text, such as \"0.25\", with at most nine decimals"
    )]
    Price(String),
    /// A price for tokens read and none for tokens written, or the other way round.
    #[error("`{0}` has only one of `input` and `output`: name both, or none where the price is unknown")]
    HalfPrice(String),
    /// It has more than a mebibyte.
    #[error("it has {0} bytes, and at most 1 MiB are read")]
    TooLarge(usize),
}

/// The shape of a catalogue.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CatalogueFile {
    #[serde(default)]
    model: Vec<FileEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileEntry {
    host: String,
    name: String,
    window: Option<u64>,
    images: Option<bool>,
    currency: Option<String>,
    above: Option<u64>,
    input: Option<String>,
    output: Option<String>,
    cache_read: Option<String>,
    cache_write: Option<String>,
}

#[derive(Debug, Clone)]
struct ModelEntry {
    host: String,
    name: String,
    window_tokens: Option<u64>,
    takes_images: Option<bool>,
    price: Option<Price>,
    own: bool,
}

impl Catalogue {
    /// The shipped catalogue below the user's own, where there is one.
    ///
    /// # Errors
    /// When one of them is none.
    pub fn with(own: Option<&str>) -> Result<Self, CatalogueError> {
        let mut entries = read(own.unwrap_or_default(), true)?;
        entries.extend(read(SHIPPED, false)?);
        Ok(Self { entries })
    }

    /// The most tokens that a request and its reply may have together.
    #[must_use]
    pub fn window_tokens(&self, base_url: &str, model: &str) -> Option<u64> {
        self.of(base_url, model).find_map(|entry| entry.window_tokens)
    }

    /// Whether it takes pictures; where nobody says so, it does not.
    #[must_use]
    pub fn takes_images(&self, base_url: &str, model: &str) -> bool {
        self.of(base_url, model).find_map(|entry| entry.takes_images).unwrap_or_default()
    }

    /// What its tokens cost; empty where nobody knows. Where the user names a price, no shipped one counts.
    #[must_use]
    pub fn prices(&self, base_url: &str, model: &str) -> Vec<Price> {
        let priced: Vec<&ModelEntry> =
            self.of(base_url, model).filter(|entry| entry.price.is_some()).collect();
        let own = priced.iter().any(|entry| entry.own);
        priced.into_iter().filter(|entry| entry.own == own).filter_map(|entry| entry.price.clone()).collect()
    }

    /// The names of the models at this address that the catalogue knows, without repetition.
    #[must_use]
    pub fn names(&self, base_url: &str) -> Vec<&str> {
        let host = authority(base_url).to_ascii_lowercase();
        let mut names: Vec<&str> = Vec::new();
        for entry in self.entries.iter().filter(|entry| entry.host == host && entry.name != "*") {
            if !names.contains(&entry.name.as_str()) {
                names.push(&entry.name);
            }
        }
        names
    }

    fn of(&self, base_url: &str, model: &str) -> impl Iterator<Item = &ModelEntry> {
        let host = authority(base_url).to_ascii_lowercase();
        self.entries.iter().filter(move |entry| entry.host == host && is_version_of(model, &entry.name))
    }
}

/// Whether a model is this one: `*` is any; a date or `latest` at the end makes no other model.
fn is_version_of(model: &str, name: &str) -> bool {
    let Some(rest) = model.strip_prefix(name) else { return name == "*" };
    let is_date =
        |rest: &str| rest.len() >= 8 && rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    rest.is_empty() || rest.strip_prefix('-').is_some_and(|rest| rest == "latest" || is_date(rest))
}

fn read(text: &str, own: bool) -> Result<Vec<ModelEntry>, CatalogueError> {
    if text.len() > CATALOGUE_BYTES_MAX {
        return Err(CatalogueError::TooLarge(text.len()));
    }
    let file: CatalogueFile =
        toml::from_str(text).map_err(|error| CatalogueError::Malformed(Box::new(error)))?;
    file.model.into_iter().map(|entry| entry_of(entry, own)).collect()
}

fn entry_of(entry: FileEntry, own: bool) -> Result<ModelEntry, CatalogueError> {
    let amount = |text: &Option<String>| text.as_deref().map(nanos).transpose();
    let price = match (amount(&entry.input)?, amount(&entry.output)?) {
        (Some(input), Some(output)) => Some(Price {
            currency: entry.currency.unwrap_or_else(|| "USD".into()),
            above_tokens: entry.above.unwrap_or_default(),
            input,
            output,
            // Without a price of its own what a cache holds counts as any input: rather too much than too
            // little.
            cache_read: amount(&entry.cache_read)?.unwrap_or(input),
            cache_write: amount(&entry.cache_write)?.unwrap_or(input),
        }),
        (None, None) => None,
        _ => return Err(CatalogueError::HalfPrice(entry.name)),
    };
    let host = entry.host.to_ascii_lowercase();
    let (name, window_tokens, takes_images) = (entry.name, entry.window, entry.images);
    Ok(ModelEntry { host, name, window_tokens, takes_images, price, own })
}

/// Billionths of an amount such as `0.25`, exactly.
fn nanos(text: &str) -> Result<u64, CatalogueError> {
    let wrong = || CatalogueError::Price(text.into());
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 9 {
        return Err(wrong());
    }
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let part: u64 = format!("{part:0<9}").parse().map_err(|_| wrong())?;
    whole.checked_mul(1_000_000_000).and_then(|nanos| nanos.checked_add(part)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::{Catalogue, CatalogueError, nanos};

    const HERE: &str = "http://127.0.0.1:8080/v1";

    #[test]
    fn the_shipped_one_can_be_read() {
        let catalogue = Catalogue::with(None).unwrap();
        assert!(catalogue.entries.len() > 10);
        for entry in &catalogue.entries {
            let price = entry.price.as_ref().unwrap();
            assert!(
                0 < price.cache_read && price.cache_read <= price.input && price.input < price.output,
                "{entry:?}"
            );
        }
        let anthropic = "https://api.anthropic.com";
        assert_eq!(catalogue.window_tokens(anthropic, "claude-haiku-4-5-20251001"), Some(200_000));
        assert_eq!(catalogue.prices(anthropic, "claude-haiku-4-5").len(), 1);
        assert!(catalogue.prices(HERE, "claude-haiku-4-5").is_empty(), "another server has other prices");
        assert!(catalogue.prices(anthropic, "claude-haiku-4-5-mini").is_empty(), "another model");
    }

    #[test]
    fn the_users_own_goes_first() {
        let own = r#"
            [[model]]
            host = "127.0.0.1:8080"
            name = "*"
            window = 32768
            currency = "EUR"
            input = "0"
            output = "0.000000001"

            [[model]]
            host = "api.anthropic.com"
            name = "claude-haiku-4-5"
            input = "7"
            output = "8"
        "#;
        let catalogue = Catalogue::with(Some(own)).unwrap();
        assert_eq!(catalogue.window_tokens(HERE, "anything"), Some(32768));
        let [price] = &catalogue.prices(HERE, "anything")[..] else { panic!("one price") };
        assert_eq!((price.currency.as_str(), price.input, price.output), ("EUR", 0, 1));
        let haiku = catalogue.prices("https://API.anthropic.com/", "claude-haiku-4-5");
        assert_eq!(haiku.iter().map(|price| price.input).collect::<Vec<_>>(), [7_000_000_000]);
        assert_eq!(catalogue.window_tokens("https://api.anthropic.com", "claude-haiku-4-5"), Some(200_000));
    }

    #[test]
    fn mistakes_are_told() {
        let refused = |text: &str| Catalogue::with(Some(text)).unwrap_err();
        let model = "[[model]]\nhost = \"h\"\nname = \"n\"\n";
        assert!(matches!(refused("models = 1"), CatalogueError::Malformed(_)));
        assert!(matches!(refused(&format!("{model}input = \"1\"")), CatalogueError::HalfPrice(_)));
        for price in ["", "1,5", "-1", "1.", ".5", "1.0000000001", "99999999999", "$1", "1e3"] {
            assert!(matches!(nanos(price), Err(CatalogueError::Price(_))), "{price:?}");
        }
        assert_eq!((nanos("3").unwrap(), nanos("0.075").unwrap()), (3_000_000_000, 75_000_000));
    }
}
