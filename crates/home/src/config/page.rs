//! The page for a browser: `[page]`.

use super::{ConfigError, document::Document, models};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The addresses at which a browser finds the page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Page {
    /// The address that the daemon listens at from its start.
    pub listen: Option<SocketAddr>,
    /// The URL under which a proxy of the owner's shows the page.
    pub shown_as: Option<String>,
}

/// Checks the settings of the file.
pub(super) fn check(document: &Document, page: &Page) -> Result<(), ConfigError> {
    if let Some(listen) = page.listen
        && !listen.ip().is_loopback()
    {
        let message = format!(
            "other machines can reach `{listen}`, and the page is not encrypted: listen at 127.0.0.1, and \
             connect with `ssh -L`, or put a server with TLS in front of it (`bailey guide web`)"
        );
        return Err(document.mistake("page.listen", message));
    }
    if let Some(url) = &page.shown_as {
        let why = match models::is_url(url) {
            Err(why) => Some(why.to_string()),
            Ok(()) if !url.starts_with("https://") => {
                Some("what shows it to others does so over `https://`".into())
            }
            Ok(()) if url.trim_end_matches('/').matches('/').count() != 2 => {
                Some("it is shown at the root of a host".into())
            }
            Ok(()) => None,
        };
        if let Some(why) = why {
            return Err(document.mistake("page.shown_as", format!("`{url}`: {why}")));
        }
    }
    Ok(())
}
